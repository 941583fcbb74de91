"""Check for what must not be committed: paths of this machine, and addresses of registries."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PATTERNS = {
    "a path of this machine": re.compile(
        "|".join(re.escape(str(path)) for path in (ROOT, ROOT.parent / "shared"))
    ),
    "a path in somebody's home": re.compile(r"/(?:home|Users)/\w+/"),
    "the address of a package index": re.compile(
        r"--(?:extra-)?index-url|--find-links|https?://[^\s/]+/(?:[\w./-]+/)?simple\b", re.I
    ),
    "a registry address in a lock file": re.compile(
        r'"resolved":\s*"https?:|^registry\s*=\s*\S*//', re.M
    ),
}


def findings() -> list[str]:
    """Return `file:line: what` for everything found in files that git has or would take."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = []
    for name in sorted(filter(None, listing.stdout.split("\0"))):
        path = ROOT / name
        if path == Path(__file__).resolve() or not path.is_file():
            continue
        # Bytes that are not text cannot hold what we look for, and must not stop us.
        text = path.read_bytes().decode("utf-8", "replace")
        for what, pattern in PATTERNS.items():
            for match in pattern.finditer(text):
                found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {what}")
    return found


if __name__ == "__main__":
    problems = findings()
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(1 if problems else 0)
