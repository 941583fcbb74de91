"""Comparison of systems, made from their rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from cbench_server.comparison.sentences import sentence
from cbench_server.comparison.values import Comparison, Front, GroupDifference, PairedDifference
from cbench_server.errors import InvalidInput
from cbench_server.metrics.outcomes import score_infos as score_infos
from cbench_server.metrics.suites import Suite
from cbench_server.results import EvalRow
from cbench_server.types import ScoreInfo

EFFECT = 0.02
"""The difference worth seeing unless another one is given: two points."""


def compare(
    sides: Mapping[str, Iterable[EvalRow]],
    *,
    pairs: Iterable[tuple[str, str]] | None = None,
    score_field: str | None = None,
    threshold: float = 0.7,
    effect: float = EFFECT,
    seed: int = 0,
    scores: Mapping[str, ScoreInfo] | None = None,
    unscored_at_worst: bool = False,
    suites: Iterable[Suite] = (),
    group_by: Sequence[str] = (),
) -> Comparison:
    """Compare systems on the examples they share, every pair of them unless `pairs` says which.

    `sides` has the rows of each system under the name it is to be shown by;
    they are read once. `scores` is what is known of the scores, by name;
    `threshold` is the score from which an example passes,
    `effect` the difference worth seeing, as a share of the largest score.
    Examples of all parts of one of the `suites` are weighed as it does;
    `group_by` names fields by whose values pairs are compared as well.
    A pair without common examples is left out with a note; raises
    InvalidInput where that leaves nothing.
    """
    # Imported here: code that only reads comparisons need not load numpy.
    from cbench_server.comparison.differences import paired_difference
    from cbench_server.comparison.fronts import fronts
    from cbench_server.comparison.groups import Groups
    from cbench_server.comparison.pairs import Side, match
    from cbench_server.comparison.suites import weighed

    if len(sides) < 2:
        raise InvalidInput(f"a comparison needs two systems, not {', '.join(sides) or 'none'}")
    groups, known = Groups(group_by), [] if score_field else [*suites]
    read = {
        name: Side(
            name, groups.noting(rows), score_field, scores, unscored_at_worst=unscored_at_worst
        )
        for name, rows in sides.items()
    }
    chosen = list(combinations(sides, 2) if pairs is None else pairs)
    notes: dict[str, None] = {}
    differences = []
    grouped: list[GroupDifference] = []
    refused: InvalidInput | None = None
    for a, b in chosen:
        try:
            matched = weighed(match([read[a], read[b]]), known)
        except InvalidInput as error:
            refused = error
            notes[str(error)] = None
            continue
        notes.update(dict.fromkeys(matched.notes))
        settings: dict[str, Any] = {"threshold": threshold, "effect": effect, "seed": seed}
        is_higher_better = _is_higher_better(matched.score, scores)
        difference = paired_difference(matched, **settings)
        differences.append(replace(difference, higher_is_better=is_higher_better))
        for field, name, part in groups.of(matched):
            own = replace(paired_difference(part, **settings), higher_is_better=is_higher_better)
            grouped.append(GroupDifference(field, name, own))
    if refused is not None and not differences:
        raise refused
    try:
        matched = weighed(match(list(read.values())), known)
        found = fronts(matched, seed, higher_is_better=_is_higher_better(matched.score, scores))
    except InvalidInput:
        found = ()
        notes["The systems share no example that all have scored, so there is no front."] = None
    notes.update(dict.fromkeys([*_untold(found, sides), *groups.notes()]))
    return Comparison(
        tuple(sides),
        tuple(_adjusted(differences)),
        found,
        tuple(notes),
        tuple(each for field in groups.fields for each in _adjusted_groups(grouped, field)),
    )


def _untold(found: Iterable[Front], sides: Iterable[str]) -> Iterator[str]:
    """Name the systems that a front lacks because nobody knows what they left of the context."""
    for front in found:
        missing = [name for name in sides if name not in {point.system for point in front.points}]
        if front.axis == "context_tokens" and missing:
            which = ", ".join(missing)
            yield f"What {which} left of the context is unknown, so the front of tokens lacks it."


def compare_two(
    rows: Iterable[EvalRow],
    a: str,
    b: str,
    score_field: str | None = None,
    *,
    scores: Mapping[str, ScoreInfo] | None = None,
    suites: Iterable[Suite] = (),
) -> PairedDifference:
    """Compare two systems among the rows of a run."""
    sides: dict[str, list[EvalRow]] = {}
    for row in rows:
        sides.setdefault(row.system, []).append(row)
    for name in (a, b):
        if name not in sides:
            known = ", ".join(sides) or "no rows at all"
            raise InvalidInput(f'there are no rows of system "{name}"; there are: {known}')
    if a == b:
        raise InvalidInput(f'cannot compare "{a}" with itself; name two systems')
    chosen = {a: sides[a], b: sides[b]}
    return compare(chosen, score_field=score_field, scores=scores, suites=suites).pairs[0]


def _is_higher_better(score: str, scores: Mapping[str, ScoreInfo] | None) -> bool:
    known = (scores or {}).get(score)
    return known is None or known.higher_is_better


def _adjusted_groups(grouped: list[GroupDifference], field: str) -> list[GroupDifference]:
    own = [each for each in grouped if each.field == field]
    pairs = _adjusted([each.pair for each in own])
    return [replace(each, pair=pair) for each, pair in zip(own, pairs, strict=True)]


def _adjusted(differences: list[PairedDifference]) -> list[PairedDifference]:
    from cbench_server.comparison.significance import holm

    adjusted = holm([each.p for each in differences])
    found = []
    for each, p in zip(differences, adjusted, strict=True):
        corrected = replace(each, p_adjusted=p, comparisons=len(differences))
        found.append(replace(corrected, sentence=sentence(corrected)))
    return found
