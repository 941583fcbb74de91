"""Regenerate the Go stubs in cbenchpb/ from protos/, or tell with --check whether they differ.

Needs Go, whose module in tools/ pins the plugins, and npm, from which buf comes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def generate(output: Path) -> None:
    """Write the stubs into `output`/cbenchpb."""
    buf, template = str(ROOT / "scripts" / "buf.py"), str(HERE / "buf.gen.yaml")
    command = [sys.executable, buf, "generate", "protos", "--template", template]
    done = subprocess.run([*command, "-o", str(output)], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def stubs(folder: Path) -> dict[str, bytes]:
    """Read the stubs in `folder`/cbenchpb."""
    return {path.name: path.read_bytes() for path in (folder / "cbenchpb").glob("*.go")}


def main(arguments: list[str]) -> int:
    """Generate, or compare."""
    if arguments != ["--check"]:
        generate(HERE)
        return 0
    with tempfile.TemporaryDirectory() as fresh:
        generate(Path(fresh))
        wanted, found = stubs(Path(fresh)), stubs(HERE)
    stale = sorted(name for name in wanted | found if wanted.get(name) != found.get(name))
    if stale:
        print(f"not what protos/ gives: {', '.join(stale)}. Run: python clients/go/stubs.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
