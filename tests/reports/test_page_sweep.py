"""A sweep on the page, in a real Chromium: curves, a band, what is enough, and the table."""

from dataclasses import replace
from typing import Any

from cbench_server.reports.report import Report
from tests.reports.browsing import Page
from tests.reports.stories import SYSTEMS, story


def point(system: str, value: float | None, tokens: float | None, score: float) -> dict[str, Any]:
    share = None if tokens is None else tokens / 100
    ends = {"low": max(0.0, score - 0.1), "high": min(1.0, score + 0.1)}
    return {
        "system": system,
        "value": value,
        "tokens": tokens,
        "share": share,
        "score": score,
        "of_whole": score,
        "of_whole_low": None,
        "of_whole_high": None,
        **ends,
    }


def swept(hostile: str = "ratio") -> Report:
    told = story()
    names = [f"{SYSTEMS[0]}:{hostile}={value}" for value in (0.1, 0.5, 0.9)]
    curve = {
        "score": "f1",
        "examples": 40,
        "points": [
            point(name, value, value * 100, value)
            for name, value in zip(names, (0.1, 0.5, 0.9), strict=True)
        ],
        "whole": point("identity", None, 100.0, 0.9),
        "controls": {
            cut: [point(f"{cut}@{names[0]}", 0.1, 10.0, 0.05)]
            for cut in ("random-drop", "truncate-head", "truncate-tail")
        },
        "goal": 0.855,
        "needed": {
            "state": "interpolated",
            "share": 0.8,
            "low": 0.7,
            "low_state": "interpolated",
            "high": None,
            "high_state": "not reached",
        },
    }
    sweep = {"option": hostile, "whole": "identity", "is_reported": False, "curve": curve}
    run = replace(told.run, config={**told.run.config, "sweep": sweep})
    return replace(told, run=run)


def test_a_sweep_is_drawn_over_tokens_with_its_band_and_the_cuts(page: Page) -> None:
    page.open(swept())
    assert page.texts("#sweep h2") == ["Sweep of ratio"]
    page.until("#sweep svg [aria-label=area] path")
    assert len(page.all("#sweep svg [aria-label=line] path")) == 4
    assert len(page.all("#sweep svg [aria-label=dot] circle")) == 3 + 3
    assert page.all("#sweep svg [aria-label=rect] rect")
    assert page.texts("#sweep tbody th") == ["0.1", "0.5", "0.9", "identity"]
    titles = ["ratio", "Tokens", "Kept", "f1", "95% CI", "Of whole"]
    cuts = ["truncate-tail", "truncate-head", "random-drop"]
    assert page.texts("#sweep thead th") == [*titles, *cuts]
    assert page.texts("#sweep tbody tr:first-child td")[:2] == ["10", "10.0%"]
    assert "95% of identity" in page.texts("#sweep .legend li")
    assert page.complaints() == []


def test_an_options_name_is_shown_as_text(page: Page) -> None:
    page.open(swept("<img src=x onerror=document.title='gone'>"), width=420)
    page.until("#sweep svg [aria-label=line] path")
    assert not page.all("#sweep img")
    assert page.chrome.title != "gone"


def test_a_run_without_one_has_no_such_section(page: Page) -> None:
    page.open(story())
    assert not page.all("#sweep")
