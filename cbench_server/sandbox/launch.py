"""Launcher of a zygote: `python -I -S launch.py DESCRIPTOR TIER`.

Isolated mode finds no package of ours, so this file says where they are, and
takes it back before any candidate could import from there.
"""

import importlib
import os
import sys

# What solutions import most, once here rather than by each of them. Not more: every
# library that is loaded makes all forks slower, and the others (asyncio, random) are rare.
_USUAL = (
    "bisect collections copy datetime decimal enum fractions functools heapq itertools json math "
    "operator re string threading time typing"
)
_OURS = (
    "array ast contextlib ctypes errno gc platform resource selectors signal socket struct "
    "sysconfig textwrap types"
)

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    home = os.path.dirname(os.path.dirname(here))
    # The library first: then our own code, which every fork runs, lies together in memory,
    # and a fork has fewer pages to copy.
    for name in f"{_USUAL} {_OURS}".split():
        importlib.import_module(name)
    sys.path.append(home)

    from cbench_server.sandbox.zygote import main

    sys.path.remove(home)
    main(sys.argv[1:])
