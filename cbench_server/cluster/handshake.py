"""The line by which a launched program says where it listens: `cbench|1|tcp|HOST:PORT`."""

import re

PROTOCOL_MAJOR = 1
_LINE = re.compile(r"cbench\|(\d+)\|(tcp|unix|attached)\|(\S+)")


class OtherProtocol(Exception):
    """It speaks another version of the protocol, which is the error's text."""


def listening_at(line: str) -> str | None:
    """Return the address that a line tells; None if it is some other line."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    if int(match[1]) != PROTOCOL_MAJOR:
        raise OtherProtocol(match[1])
    return match[3] if match[2] == "tcp" else f"{match[2]}:{match[3]}"
