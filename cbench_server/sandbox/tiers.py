"""Tiers of the jail, from best to worst, and what each is worth."""

import os
import sys
import sysconfig
from typing import NamedTuple


# No dataclass: importing that would double what a fork of the zygote has to copy.
class Tier(NamedTuple):
    """One way of locking candidates in."""

    name: str
    network: str
    """`none`, or `open` if a candidate could reach others."""
    filesystem: str
    """`private`, `host-readonly` (the interpreter's libraries, and a work area), or `host`."""
    is_split_sound: bool
    """Whether a candidate has no way to reach its tester; else integrity is `nominal`."""
    forks_ahead: int
    """Pairs kept waiting: none where a waiting pair would leave a trace in the file system."""


NAMESPACES = Tier("namespaces", "none", "private", True, 6)
LANDLOCK = Tier("landlock", "none", "host-readonly", True, 0)
SECCOMP = Tier("seccomp", "none", "host", False, 0)
PROCESS = Tier("process", "open", "host", False, 0)

TIERS = {tier.name: tier for tier in (NAMESPACES, LANDLOCK, SECCOMP, PROCESS)}

POLICIES: dict[str, tuple[Tier, ...]] = {
    "strict": (NAMESPACES, LANDLOCK),
    "best-effort": (NAMESPACES, LANDLOCK, SECCOMP, PROCESS),
    "off": (PROCESS,),
}
"""The tiers that each `sandbox` option accepts, best first."""


def readable_paths() -> list[str]:
    """Return what an interpreter must be able to read: its modules, the C libraries, devices."""
    library = os.path.realpath(sysconfig.get_path("stdlib"))
    shared = os.path.realpath(os.path.join(sys.base_prefix, "lib"))
    paths = [library, os.path.realpath(sysconfig.get_path("platstdlib"))]
    # Where a python that is a shared library keeps it; all of /usr/lib is listed anyway.
    paths += [] if shared.startswith("/usr/lib") else [shared]
    paths += ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache"]
    paths += ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"]
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]
