"""Tables of a comparison: titles and cells as text, and their HTML for a notebook."""

import html
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from cbench_server.comparison.sentences import number, p_value
from cbench_server.metrics.groups import FEW_ROWS
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid

if TYPE_CHECKING:
    from cbench_server.comparison.values import (
        Axis,
        Comparison,
        Front,
        GroupDifference,
        PairedDifference,
    )

FLIPS_SHOWN = 10
MARK = "†"
"""Stands behind every figure of a judge that did not pass its controls."""

_AXES: dict["Axis", tuple[str, Callable[[float | None], str]]] = {
    "context_tokens": ("Context tokens", numbers.count),
    "latency": ("Latency", numbers.seconds),
    "cost_usd": ("US$", numbers.dollars),
}


def to_html(sentences: Iterable[str], tables: Iterable[Grid], notes: Iterable[str] = ()) -> str:
    """Render for a notebook, with all text escaped."""
    parts = [f"<p>{html.escape(each)}</p>" for each in sentences]
    for table in tables:
        parts.append(f"<h4>{html.escape(table.title)}</h4>" if table.title else "")
        parts.append(_html_table(table))
    parts += [f"<p><small>{html.escape(note)}</small></p>" for note in notes]
    return "".join(parts)


def _html_table(table: Grid) -> str:
    def line(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in table.rows)
    return f"<table><thead>{line(table.header, 'th')}</thead><tbody>{body}</tbody></table>"


def tables_of(comparison: "Comparison", flips: int = FLIPS_SHOWN) -> Iterator[Grid]:
    """Yield the pairs, the fronts and the widest flips."""
    yield _pairs_table(comparison.pairs)
    yield from _group_tables(comparison.groups)
    for front in comparison.fronts:
        yield _front_table(front, _mark(comparison.pairs))
    yield from _flip_tables(comparison.pairs, flips)


def pair_tables(pair: "PairedDifference") -> Iterator[Grid]:
    """Yield a pair and its widest flips."""
    yield _pairs_table((pair,))
    yield from _flip_tables((pair,), FLIPS_SHOWN)


def _flip_tables(pairs: tuple["PairedDifference", ...], flips: int) -> Iterator[Grid]:
    for pair in pairs:
        if pair.flips and flips:
            yield _flips_table(pair, flips)


def _pairs_table(pairs: tuple["PairedDifference", ...]) -> Grid:
    axes = [
        axis for axis in _AXES if any(cost.axis == axis for pair in pairs for cost in pair.costs)
    ]
    p_title = "p (Holm)" if len(pairs) > 1 else "p"
    header = (
        "A",
        "B",
        f"A - B{_mark(pairs)}",
        "95% CI",
        p_title,
        "Wins",
        "Losses",
        "Ties",
        "Detectable",
    )
    rows = []
    for pair in pairs:
        changes = {cost.axis: cost.change.value for cost in pair.costs}
        rows.append(
            (
                pair.a,
                pair.b,
                _number(pair.difference.value, pair),
                _interval(pair.difference, partial(number, pair=pair)),
                p_value(pair),
                f"{pair.wins:,}",
                f"{pair.losses:,}",
                f"{pair.ties:,}",
                _number(pair.minimum_detectable, pair),
                *(numbers.change(changes.get(axis)) for axis in axes),
            )
        )
    return Grid((*header, *(_AXES[axis][0] for axis in axes)), tuple(rows), frozenset({1}))


def _group_tables(groups: tuple["GroupDifference", ...]) -> Iterator[Grid]:
    for field in dict.fromkeys(each.field for each in groups):
        own = [each for each in groups if each.field == field]
        lines = tuple(
            (
                each.group,
                each.pair.a,
                each.pair.b,
                _number(each.pair.difference.value, each.pair),
                _interval(each.pair.difference, partial(number, pair=each.pair)),
                p_value(each.pair),
                f"{each.pair.examples:,}{' (few)' if each.pair.examples < FEW_ROWS else ''}",
            )
            for each in own
        )
        p_title = "p (Holm)" if len(own) > 1 else "p"
        mark = _mark(tuple(each.pair for each in own))
        header = (field, "A", "B", f"A - B{mark}", "95% CI", p_title, "Examples")
        yield Grid(header, lines, frozenset({1, 2}), f"Difference by {field}")


def _mark(pairs: tuple["PairedDifference", ...]) -> str:
    """Return the mark of a judge that did not pass, where the score's name carries it."""
    return next((MARK for pair in pairs if pair.score.endswith(MARK)), "")


def _front_table(front: "Front", mark: str) -> Grid:
    title, show = _AXES[front.axis]
    rows = tuple(
        (
            point.system,
            numbers.score(point.quality.value),
            _interval(point.quality, numbers.score),
            show(point.cost.value),
            _interval(point.cost, show),
            f"{point.layer}",
            f"{point.probability:.0%}",
        )
        for point in sorted(front.points, key=lambda point: (point.layer, point.system))
    )
    header = ("System", f"Score{mark}", "95% CI", title, "95% CI", "Front", "On it")
    return Grid(header, rows, title=f"Quality against {title.lower()}")


def _flips_table(pair: "PairedDifference", flips: int) -> Grid:
    rows = tuple(
        (
            flip.dataset,
            str(flip.example_id),
            numbers.score(flip.score_a),
            numbers.score(flip.score_b),
        )
        for flip in pair.flips[:flips]
    )
    only = f"; the {flips} widest" if pair.flipped_to_a + pair.flipped_to_b > flips else ""
    title = (
        f"Flipped: {pair.flipped_to_a:,} pass with {pair.a} only, {pair.flipped_to_b:,} "
        f"with {pair.b} only{only}"
    )
    return Grid(("Dataset", "Example", pair.a, pair.b), rows, frozenset({1}), title)


def _number(value: float | None, pair: "PairedDifference") -> str:
    return numbers.MISSING if value is None else number(value, pair)


def _interval(estimate: Estimate, show: Callable[[float], str]) -> str:
    if estimate.low is None or estimate.high is None:
        return numbers.MISSING
    return f"{show(estimate.low)} to {show(estimate.high)}"
