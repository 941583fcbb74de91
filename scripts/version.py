"""One version for every package: `cbench_server/__init__.py` has it, and this copies it.

python scripts/version.py          check that all agree (`make lint` does)
python scripts/version.py 0.2.0    set it everywhere
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = "cbench_server/__init__.py"
_NUMBER = r"(\d+\.\d+\.\d+)"

# Every place that a package manager or a compiler reads, by the text around the number.
PLACES = {
    HOME: rf'^__version__ = "{_NUMBER}"',
    "clients/python/cbench_client/__init__.py": rf'^__version__ = "{_NUMBER}"',
    "clients/python/cbench_client/host/host.py": rf'^SDK = "cbench-python/{_NUMBER}"',
    "clients/go/doc.go": rf'^const version = "{_NUMBER}"',
    "clients/rust/Cargo.toml": rf'^name = "cbench-client"\nversion = "{_NUMBER}"',
    "clients/rust/Cargo.lock": rf'^name = "cbench-client"\nversion = "{_NUMBER}"',
    "clients/node/package.json": rf'^  "version": "{_NUMBER}"',
    "clients/node/package-lock.json": rf'"name": "cbench-client",\n +"version": "{_NUMBER}"',
}
# The server takes any client of its own minor version.
PIN = "pyproject.toml", re.compile(r'"cbench-client~=(\d+\.\d+)\.0"')


def main(arguments: list[str]) -> int:
    """Check, or set, and say what is where."""
    if arguments:
        if not re.fullmatch(_NUMBER, arguments[0]):
            print(f'"{arguments[0]}" is not a version: three numbers, such as 0.2.0')
            return 2
        _set(arguments[0])
    wrong = [f"{place} says {found}" for place, found in found_versions() if found != version()]
    minor = version().rpartition(".")[0]
    if (pinned := PIN[1].search((ROOT / PIN[0]).read_text())) is None or pinned[1] != minor:
        wrong.append(f"{PIN[0]} does not ask for cbench-client~={minor}.0")
    for each in wrong:
        print(f"{each}, and {HOME} says {version()}. Run: python scripts/version.py {version()}")
    return 1 if wrong else 0


def version() -> str:
    """Return the version of the tree."""
    found = re.search(PLACES[HOME], (ROOT / HOME).read_text(), re.M)
    if found is None:
        raise SystemExit(f"{HOME} has no __version__")
    return found[1]


def found_versions() -> list[tuple[str, str]]:
    """Return every place with what it says; nothing where it has no version."""
    found = []
    for place, pattern in PLACES.items():
        all_of_them = re.findall(pattern, (ROOT / place).read_text(), re.M)
        found += [(place, each) for each in all_of_them or ["no version"]]
    return found


def _set(number: str) -> None:
    for place, pattern in PLACES.items():
        path = ROOT / place
        path.write_text(
            re.sub(
                pattern,
                lambda found: found[0].replace(found[1], number),
                path.read_text(),
                flags=re.M,
            )
        )
    path = ROOT / PIN[0]
    minor = number.rpartition(".")[0]
    path.write_text(PIN[1].sub(f'"cbench-client~={minor}.0"', path.read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
