"""Raters: several judges of the same thing, who must agree before one side is called better."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.comparison.sentences import sentence
from cbench_server.comparison.tables import MARK
from cbench_server.comparison.values import Comparison, PairedDifference
from cbench_server.results import EvalRow


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
        found,
        pairs=tuple(undisputed(pair, signs.get((pair.a, pair.b), [])) for pair in found.pairs),
    )


def undisputed(pair: PairedDifference, others: Sequence[float]) -> PairedDifference:
    """Take back a claim that the difference of another rater turns around."""
    if not any((pair.difference.value or 0.0) * other < 0 for other in others):
        return pair
    disputed = replace(pair, disputed=True)
    return replace(disputed, sentence=sentence(disputed))


def without_disputed(
    found: Comparison,
    sides: Mapping[str, Iterable[EvalRow]],
    judges: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
) -> Comparison:
    """Take back claims of a comparison, made with these settings, that other judges turn around."""
    from cbench_server.comparison.comparison import compare

    # A judge that one of the runs did not have cannot order them.
    twins = {
        twin
        for pair in found.pairs
        for twin in twins_of(pair.score, judges)
        if all(any(twin in row.scores for row in rows) for rows in sides.values())
    }
    others = [compare(sides, **{**settings, "score_field": twin}) for twin in sorted(twins)]
    return with_disputes(found, others)


def as_proven(text: str, rows: Iterable[EvalRow], judges: Sequence[Mapping[str, Any]]) -> str:
    """Return what is said of rows, marked if one counts a score of a judge that did not pass."""
    failed = {name for each in judges if not each.get("qualified") for name in each["scores"]}
    is_marked = bool(failed) and any(row.primary_score in failed for row in rows)
    return f"{MARK} {text}" if is_marked else text
