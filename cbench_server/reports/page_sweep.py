"""Sweep on the page, as plain data: curves over measured tokens, and the table below them."""

from typing import Any

from cbench_server.reports.columns import REPORTED
from cbench_server.reports.judges import with_mark
from cbench_server.reports.sweeps import curve_of, cuts_of, sweep_grid
from cbench_server.spec import Run
from cbench_server.texts import numbers


def page_sweep(run: Run) -> dict[str, Any] | None:
    """Give the curves of a run's sweep, None where it has none."""
    curve, grid = curve_of(run), sweep_grid(run)
    if curve is None or grid is None:
        return None
    sweep = run.config["sweep"]
    own = {"name": "", "points": [_point(each, sweep["option"]) for each in curve["points"]]}
    cuts = [
        {
            "name": name,
            "points": [_point(each, sweep["option"]) for each in curve["controls"][name]],
        }
        for name in cuts_of(curve)
    ]
    own["name"] = curve["points"][0]["system"].rpartition(":")[0]
    whole = curve["whole"]
    return {
        "option": sweep["option"],
        "title": f"Prompt tokens per example, {REPORTED}"
        if sweep["is_reported"]
        else "Context tokens per example",
        "score": with_mark(curve["score"], run),
        "examples": curve["examples"],
        "curve": own,
        "cuts": cuts,
        "whole": None if whole is None else _point(whole, sweep["option"]),
        "goal": curve["goal"],
        "needed": _needed(curve),
        "table": {
            "titles": [with_mark(title, run) for title in grid.header],
            "rows": [[{"text": text} for text in row] for row in grid.rows],
        },
        "note": grid.title,
    }


def _point(point: dict[str, Any], option: str) -> dict[str, Any]:
    value = point["value"]
    return {
        "system": point["system"],
        "label": point["system"] if value is None else f"{option}={value:g}",
        "value": "" if value is None else f"{value:g}",
        "tokens": point["tokens"],
        "score": point["score"],
        "low": point["low"],
        "high": point["high"],
        "text": numbers.score(point["score"]),
        "interval": numbers.interval(point["low"], point["high"]),
        "kept": numbers.share(point["share"]),
    }


def _needed(curve: dict[str, Any]) -> dict[str, float] | None:
    """Give the interval of what is needed in tokens, as far as the chart reaches."""
    needed, whole = curve["needed"], curve["whole"]
    if needed["state"] in ("unknown", "not reached") or whole is None or not whole["tokens"]:
        return None
    shares: list[float] = [point["share"] for point in curve["points"]]
    smallest, largest = min(shares), max(shares)

    def end(name: str) -> float:
        if needed[name] is not None:
            return float(needed[name])
        return largest if needed[f"{name}_state"] == "not reached" else smallest

    at = needed["share"] if needed["share"] is not None else smallest
    tokens = whole["tokens"]
    return {"low": end("low") * tokens, "at": at * tokens, "high": end("high") * tokens}
