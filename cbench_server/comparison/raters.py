"""Raters: several judges of the same thing, who must agree before one side is called better."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.comparison.sentences import sentence
from cbench_server.comparison.values import Comparison, PairedDifference


def twins_of(score: str, judges: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the scores that other judges give who were asked the same."""
    mine = [record for record in judges if score in record["scores"]]
    return sorted(
        {
            str(other["scores"][list(record["scores"]).index(score)])
            for record in mine
            for other in judges
            if (other["dataset"], other["pack"]) == (record["dataset"], record["pack"])
            and (other["model"], other["url"]) != (record["model"], record["url"])
        }
    )


def with_disputes(found: Comparison, others: Iterable[Comparison]) -> Comparison:
    """Take back claims that another rater's comparison turns around."""
    signs: dict[tuple[str, str], list[float]] = {}
    for other in others:
        for pair in other.pairs:
            signs.setdefault((pair.a, pair.b), []).append(pair.difference.value or 0.0)
    return replace(
        found, pairs=tuple(_checked(pair, signs.get((pair.a, pair.b), [])) for pair in found.pairs)
    )


def _checked(pair: PairedDifference, others: Sequence[float]) -> PairedDifference:
    if not any((pair.difference.value or 0.0) * other < 0 for other in others):
        return pair
    disputed = replace(pair, disputed=True)
    return replace(disputed, sentence=sentence(disputed))
