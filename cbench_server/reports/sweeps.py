"""Sweeps in reports: the points of a curve as a table, and the systems it stands for."""

from typing import Any

from cbench_server.reports.columns import REPORTED, UNKNOWN
from cbench_server.spec import Run
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid


def curve_of(run: Run) -> dict[str, Any] | None:
    """Return the curve that a run's sweep has; None without one."""
    sweep = run.config.get("sweep") or {}
    curve: dict[str, Any] | None = sweep.get("curve")
    return curve


def listed(run: Run) -> tuple[str, ...]:
    """Return the systems that tables list: cuts to the lengths of a sweep are in its own table."""
    curve = curve_of(run)
    if curve is None:
        return run.ranked
    cuts = {point["system"] for points in curve["controls"].values() for point in points}
    return tuple(name for name in run.ranked if name not in cuts)


def sweep_grid(run: Run) -> Grid | None:
    """Build the table of a sweep: its points from the fewest tokens on, then the whole context."""
    curve = curve_of(run)
    if curve is None:
        return None
    sweep = run.config["sweep"]
    reads = any(point.get("reader_prompt_tokens") is not None for point in curve["points"])
    cuts = cuts_of(curve)
    tokens = f"Prompt tokens {REPORTED}" if sweep["is_reported"] else "Tokens"
    header = (
        sweep["option"],
        tokens,
        "Kept",
        *(("Prompt tokens of the reader",) if reads else ()),
        curve["score"],
        "95% CI",
        "Of whole",
        *cuts,
    )
    points = sorted(curve["points"], key=lambda point: (point["tokens"] or 0.0, point["value"]))
    rows = [_row(point, curve, reads=reads) for point in points]
    if curve["whole"] is not None:
        rows.append(_row(curve["whole"], curve, reads=reads))
    title = f"Sweep of {sweep['option']}, on the {curve['examples']:,} examples that all arms have"
    if cuts:
        title += f"; {', '.join(cuts)} cut to the same lengths"
    return Grid(header, tuple(rows), title=title)


def cuts_of(curve: dict[str, Any]) -> list[str]:
    """Name the ways of cutting, truncation first; what crossed the wire has lost its order."""
    return sorted(curve["controls"], reverse=True)


def _row(point: dict[str, Any], curve: dict[str, Any], *, reads: bool) -> tuple[str, ...]:
    value = point["value"]
    cuts = (
        next((each["score"] for each in cut if value is not None and each["value"] == value), None)
        for cut in (curve["controls"][name] for name in cuts_of(curve))
    )
    tokens = point["tokens"]
    return (
        point["system"] if value is None else f"{value:g}",
        UNKNOWN if tokens is None else numbers.count(tokens),
        numbers.share(point["share"]),
        *((numbers.count(point.get("reader_prompt_tokens")),) if reads else ()),
        numbers.score(point["score"]),
        numbers.interval(point["low"], point["high"]),
        numbers.share(point["of_whole"]),
        *map(numbers.score, cuts),
    )
