"""Entry point of `python -m cbench_server.cli`, for when the script is not on the path."""

import sys

from cbench_server.cli import main

sys.exit(main())
