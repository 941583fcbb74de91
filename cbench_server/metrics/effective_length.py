"""Effective length: how long a context may be before a score falls off, as NoLiMa has it."""

import re
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra, Labels

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_LENGTH = re.compile(r"nolima:((?:\w+-)?)(\d+)(k?)")
_PLACE = re.compile(r"_b\d+_d\d+$")
# A pair of a needle and a question, without the place that the needle has.
_PAIR = Extra(lambda row: _PLACE.sub("", str(row.example_id)), Labels)
_SHORT = (250, 500, 1_000)
_KEPT = 0.85


class EffectiveLength(FrameMetric):
    """Gives `base_score` and `effective_length` of a run on NoLiMa's lengths.

    The base score is what short contexts reach: for each pair of a needle and a
    question the best of its means at 250, 500 and 1,000 tokens, and the mean of
    those. The effective length is the longest at which the mean is at least 85 %
    of it; 0 if there is none. Both need all three short lengths. Rows that failed
    count at worst. Of several sets of needles the one is taken that comes first.
    """

    name = "effective-length"
    description = "The longest context that keeps 85% of the score on short ones, as in NoLiMa."
    keys = ("base_score", "effective_length")
    extras = (_PAIR,)

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        means = self._means(frame)
        short = [means.get(length, {}) for length in _SHORT]
        pairs = set(short[0]).intersection(*short[1:])
        if not pairs:
            return {"base_score": None, "effective_length": None}
        base = sum(max(each[pair][0] for each in short) for pair in pairs) / len(pairs)
        kept = [length for length, known in means.items() if _mean(known) >= _KEPT * base]
        return {"base_score": base, "effective_length": float(max(kept, default=0))}

    def _means(self, frame: "Frame") -> dict[int, dict[int, tuple[float, int]]]:
        """Return by length, for each pair, the mean of its rows and how many they are."""
        values, counts = frame.scored(self.score_field).with_failures()
        _, codes = frame.labels(_PAIR)
        found = sorted(
            (named[1], int(named[2]) * (1000 if named[3] else 1), code)
            for tag, code in frame.datasets.items()
            if (named := _LENGTH.fullmatch(tag))
        )
        means: dict[int, dict[int, tuple[float, int]]] = {}
        for needles, length, code in found:
            if needles != found[0][0]:
                continue
            rows = counts & (frame.dataset == code)
            chosen, of_pair = values[rows], codes[rows]
            means[length] = {
                int(pair): (float(chosen[of_pair == pair].mean()), int((of_pair == pair).sum()))
                for pair in set(of_pair.tolist())
            }
        return means


def _mean(known: dict[int, tuple[float, int]]) -> float:
    """Return the mean of all rows of a length."""
    total = sum(count for _, count in known.values())
    return sum(mean * count for mean, count in known.values()) / total if total else 0.0
