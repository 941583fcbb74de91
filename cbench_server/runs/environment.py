"""Environment of a run: the machine, its load and the versions on which figures may depend."""

import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from cbench_server import __version__

# What scores, tokens and times are computed with.
_PACKAGES = (
    "grpcio",
    "protobuf",
    "numpy",
    "tiktoken",
    "tokenizers",
    "rouge-score",
    "sympy",
    "httpx",
    "datasets",
)


def describe_environment() -> dict[str, Any]:
    """Return what a sceptic asks of a run; the load is that of this moment."""
    return {
        "cbench_version": __version__,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "machine": {**_machine(), "load": [round(each, 2) for each in os.getloadavg()]},
        "packages": _packages(),
    }


@cache
def _machine() -> dict[str, Any]:
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # Linux alone tells.
        usable = os.cpu_count() or 1
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "memory_bytes": pages * size,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


@cache
def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
