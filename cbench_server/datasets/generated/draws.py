"""Draws: random choices that are the same in every Python, on every machine."""

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")


class Draws:
    """A stream of draws that is fixed by what it is for: `Draws(seed, "niah", 4000, 7)`.

    Everything is drawn through `below`. Of all methods of `random.Random` only
    `random()` promises the same numbers in every version of Python, and a
    product of it and a whole number is the same wherever floats are IEEE's.
    """

    def __init__(self, *purpose: object) -> None:
        digest = blake2b("\x1f".join(map(str, purpose)).encode(), digest_size=8).digest()
        self._random = random.Random(int.from_bytes(digest, "big")).random

    def below(self, count: int) -> int:
        """Draw one of 0, 1, ... count - 1."""
        return int(self._random() * count)

    def pick(self, items: Sequence[Item]) -> Item:
        """Draw one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in a drawn order: each place takes one of those left, from the end."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """Draw different items, in a drawn order."""
        rest = list(items)
        for place in range(count):
            other = place + self.below(len(rest) - place)
            rest[place], rest[other] = rest[other], rest[place]
        return rest[:count]

    def digits(self, count: int) -> str:
        """Draw a number of that many digits, which does not begin with 0."""
        return str(1 + self.below(9)) + "".join(str(self.below(10)) for _ in range(count - 1))

    def letters(self, count: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz") -> str:
        """Draw letters."""
        return "".join(alphabet[self.below(len(alphabet))] for _ in range(count))

    def uuid(self) -> str:
        """Draw 32 hexadecimal digits in the form of a random UUID."""
        digits = self.letters(32, "0123456789abcdef")
        variant = "89ab"[self.below(4)]
        return (
            f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
        )
