"""Room for the values of a message whose size another process chose."""

from cbench_client.errors import Unencodable

MAX_ANSWER_VALUES = 50_000
"""Values of lists and mappings, of all depths, that an answer may hold: decoding is not free."""


class Room:
    """What is left of it."""

    def __init__(self, values: int = MAX_ANSWER_VALUES) -> None:
        self._most = self._left = values

    def take(self, values: int, path: str) -> None:
        """Take room for more values. Raises `Unencodable` where there is none."""
        self._left -= values
        if self._left < 0:
            raise Unencodable(
                f'field "{path}" brings the answer to more than {self._most:,} values. Give them '
                "as text, or fewer of them."
            )
