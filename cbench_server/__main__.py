"""Entry point of `python -m cbench_server`, which is the command `cbench`."""

import sys

from cbench_server.cli import main

if __name__ == "__main__":
    sys.exit(main())
