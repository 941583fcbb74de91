"""A comparison as text, as Markdown, as plain data and as HTML for a notebook."""

import html
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from cbench_server.comparison.sentences import number, p_text
from cbench_server.comparison.values import Axis, Comparison, Front, PairedDifference
from cbench_server.metrics.estimate import Estimate
from cbench_server.reports import numbers
from cbench_server.reports.grid import Grid, printable, to_text
from cbench_server.reports.markdown import escape

FLIPS_SHOWN = 10

_AXES: dict[Axis, tuple[str, Callable[[float | None], str]]] = {
    "context_tokens": ("Context tokens", numbers.count),
    "latency": ("Latency", numbers.seconds),
    "cost_usd": ("US$", numbers.plain),
}


def to_table(
    comparison: Comparison, draw: Callable[[Grid], str] = to_text, flips: int = FLIPS_SHOWN
) -> str:
    """Render for a terminal: first what can be claimed, then what it rests on."""
    parts = ["\n".join(printable(each) for each in comparison.sentences)]
    parts += [
        f"{title}\n{draw(grid)}" if title else draw(grid)
        for title, grid in _grids(comparison, flips)
    ]
    if comparison.notes:
        parts.append("\n".join(map(printable, comparison.notes)))
    return "\n\n".join(parts) + "\n"


def to_markdown(comparison: Comparison, flips: int = FLIPS_SHOWN) -> str:
    """Render for a pull request."""
    parts = ["# Comparison", "\n".join(f"- {escape(each)}" for each in comparison.sentences)]
    for title, grid in _grids(comparison, flips):
        parts.append((f"## {escape(title)}\n\n" if title else "") + _markdown_grid(grid))
    if comparison.notes:
        parts.append("\n".join(f"*{escape(each)}*" for each in comparison.notes))
    return "\n\n".join(parts) + "\n"


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Give a comparison as plain data."""
    document = asdict(comparison)
    for pair, plain in zip(comparison.pairs, document["pairs"], strict=True):
        plain["is_claimed"] = pair.is_claimed
    return document


def to_html(comparison: Comparison) -> str:
    """Render for a notebook; everything from elsewhere is inert text."""
    parts = [f"<p>{html.escape(each)}</p>" for each in comparison.sentences]
    for title, grid in _grids(comparison, FLIPS_SHOWN):
        parts.append((f"<h4>{html.escape(title)}</h4>" if title else "") + html_grid(grid))
    parts += [f"<p><small>{html.escape(note)}</small></p>" for note in comparison.notes]
    return "".join(parts)


def pair_to_html(pair: PairedDifference) -> str:
    """Render one pair for a notebook."""
    return to_html(Comparison((pair.a, pair.b), (pair,), (), ()))


def html_grid(grid: Grid) -> str:
    """Render a table as HTML."""

    def line(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in grid.rows)
    return f"<table><thead>{line(grid.header, 'th')}</thead><tbody>{body}</tbody></table>"


def _grids(comparison: Comparison, flips: int) -> Iterator[tuple[str, Grid]]:
    yield "", _pairs_grid(comparison.pairs)
    for front in comparison.fronts:
        yield f"Quality against {_AXES[front.axis][0].lower()}", _front_grid(front)
    for pair in comparison.pairs:
        if pair.flips and flips:
            only = f"; the {flips} widest" if pair.flipped_to_a + pair.flipped_to_b > flips else ""
            title = (
                f"Flipped: {pair.flipped_to_a:,} pass with {pair.a} only, {pair.flipped_to_b:,} "
                f"with {pair.b} only{only}"
            )
            yield title, _flips_grid(pair, flips)


def _pairs_grid(pairs: tuple[PairedDifference, ...]) -> Grid:
    axes = [
        axis for axis in _AXES if any(cost.axis == axis for pair in pairs for cost in pair.costs)
    ]
    p_title = "p (Holm)" if len(pairs) > 1 else "p"
    header = ("A", "B", "A - B", "95% CI", p_title, "Wins", "Losses", "Ties", "Detectable")
    rows = []
    for pair in pairs:
        changes = {cost.axis: cost.change.value for cost in pair.costs}
        rows.append(
            (
                pair.a,
                pair.b,
                _number(pair.difference.value, pair),
                _interval(pair.difference, partial(number, pair=pair)),
                p_text(pair).split(" ")[0].removeprefix("p").removeprefix("="),
                f"{pair.wins:,}",
                f"{pair.losses:,}",
                f"{pair.ties:,}",
                _number(pair.minimum_detectable, pair),
                *(numbers.change(changes.get(axis)) for axis in axes),
            )
        )
    return Grid((*header, *(_AXES[axis][0] for axis in axes)), tuple(rows), frozenset({1}))


def _front_grid(front: Front) -> Grid:
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
    return Grid(("System", "Score", "95% CI", title, "95% CI", "Front", "On it"), rows)


def _flips_grid(pair: PairedDifference, flips: int) -> Grid:
    rows = tuple(
        (
            flip.dataset,
            str(flip.example_id),
            numbers.score(flip.score_a),
            numbers.score(flip.score_b),
        )
        for flip in pair.flips[:flips]
    )
    return Grid(("Dataset", "Example", pair.a, pair.b), rows, frozenset({1}))


def _number(value: float | None, pair: PairedDifference) -> str:
    return numbers.MISSING if value is None else number(value, pair)


def _interval(estimate: Estimate, show: Callable[[float], str]) -> str:
    if estimate.low is None or estimate.high is None:
        return numbers.MISSING
    return f"{show(estimate.low)} to {show(estimate.high)}"


def _markdown_grid(grid: Grid) -> str:
    rule = ("---" if grid.is_left(column) else "---:" for column in range(len(grid.header)))
    lines = [map(escape, grid.header), rule, *(map(escape, row) for row in grid.rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
