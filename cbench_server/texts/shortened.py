"""Messages without the pages that somebody put into a name."""

import re

_LONGEST_PART = 400
_LONGEST = 2_000
_END = 60
# What stands between quotes, or a word.
_PART = re.compile(r'"[^"]*"|\S+')


def shortened(message: str) -> str:
    """Cut the middle out of every quoted text or word that is longer than one can read."""
    if len(message) <= _LONGEST_PART:
        return message
    return _cut(_PART.sub(lambda part: _cut(part[0], _LONGEST_PART), message), _LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - _END]}…{text[-_END:]}"
