"""Killable programs: what the processes that score have in common, whoever starts them.

A message to or from one is a 4-byte length, big-endian, and that many bytes.
"""

import os
import sys

# No other variable reaches a program: evaluators need no secrets.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
HEADER_BYTES = 4


def environment() -> dict[str, str]:
    """Return the variables of a program, which finds the same modules as this process."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return passed | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def frame(body: bytes) -> bytes:
    """Put a message's length before it."""
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def body_length(header: bytes) -> int:
    """Return how many bytes follow a header."""
    return int.from_bytes(header, "big")
