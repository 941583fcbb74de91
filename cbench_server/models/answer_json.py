"""JSON of servers that anybody may name: it is read where that holds the loop for a moment only."""

import json
from typing import Any

from cbench_server.limits import MAX_REPLY_VALUES

# The time to read a number grows with the square of its digits.
_MOST_DIGITS = 100


class TooManyValues(ValueError):
    """An answer that would take the event loop too long to read."""

    def __init__(self, most: int) -> None:
        super().__init__(f"answered with more than {most:,} values")


def read_json(answer: bytes, most: int = MAX_REPLY_VALUES) -> Any:
    """Parse an answer; raise ValueError, or RecursionError, for one that is not read.

    Values are counted by what separates and opens them. What stands in texts is counted, too:
    no answer that is meant has so many commas.
    """
    if sum(map(answer.count, (b",", b"[", b"{"))) > most:
        raise TooManyValues(most)
    return json.loads(answer, parse_int=_whole)


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)
