"""Starts a zygote: `python -I -S launch.py DESCRIPTOR TIER`.

Isolated mode finds no package of ours, so this file says where they are, and
takes it back before any candidate could import from there.
"""

import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    home = os.path.dirname(os.path.dirname(here))
    sys.path.append(home)

    from cbench_server.sandbox.zygote import main

    sys.path.remove(home)
    main(sys.argv[1:])
