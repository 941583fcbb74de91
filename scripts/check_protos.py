"""Check that the committed Python stubs are those that protos/ gives.

Run with the interpreter of .venv-protos, which has the generator.
"""

import sys
import tempfile
from pathlib import Path

from gen_protos import DEFAULT_OUTPUT, generate


def differences(committed: Path) -> list[str]:
    """Return the stubs that differ, are missing, or should not exist."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "_gen"
        generate(fresh)
        wanted, found = _contents(fresh), _contents(committed)
    return sorted(name for name in wanted | found if wanted.get(name) != found.get(name))


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }


if __name__ == "__main__":
    stale = differences(DEFAULT_OUTPUT)
    if stale:
        sys.exit(f"these stubs are not what protos/ gives: {', '.join(stale)}. Run: make protos")
