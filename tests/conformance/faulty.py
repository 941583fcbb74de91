"""The Python conformance program with one thing wrong: `faulty.py FAULT [flags of the program]`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "clients" / "python" / "conformance")]


def main() -> int:
    """Break what the first argument names, and run the program."""
    from faults import FAULTS

    FAULTS[sys.argv.pop(1)]()
    import program

    return program.main()


if __name__ == "__main__":
    sys.exit(main())
