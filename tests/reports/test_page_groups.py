"""Groups, suites and heat maps on the page, in a real browser."""

from dataclasses import replace

from cbench_server.metrics.suites import Suite
from cbench_server.reports.groups import summarized_by
from cbench_server.reports.report import Report, compared_sides
from cbench_server.results import EvalRow

from .browsing import Page
from .stories import SYSTEMS, story

LEVELS = ("easy", "hard")


def _place(row: EvalRow) -> None:
    row.groups = {
        "level": LEVELS[row.ordinal % 2],
        "length": str(1000 * (1 + row.ordinal % 2)),
        "depth": str(50 * (row.ordinal % 3)),
    }


def grouped() -> Report:
    """Tell of a run with groups by level, a grid, and a suite of its two datasets."""
    report = story(change=_place)
    suite = Suite("both:all", "categories", {"mini-qa": "questions", "long-notes": "questions"})
    found = summarized_by(["level"], report.run, report.rows())
    summary = {
        system: {
            **{key: value for key, value in values.items() if not key.startswith("group")},
            **found[system],
            "suite:both:all/questions": 0.5,
            "suite:both:all": 0.5,
            "suite:both:all_ci_low": 0.4,
            "suite:both:all_ci_high": 0.6,
        }
        for system, values in report.run.summary.items()
    }
    config = {**report.run.config, "suites": [suite.describe()]}
    run = replace(report.run, summary=summary, config=config)
    rows = {name: [row for row in report.rows() if row.system == name] for name in SYSTEMS}
    settings = {"group_by": ["level"]}
    return replace(report, run=run, compare=lambda: compared_sides(rows, [run], **settings))


def test_groups_suites_and_the_grid_have_their_places(page: Page) -> None:
    page.open(grouped())
    assert page.one("h1").text == "both:all"
    assert page.texts("#summary thead th")[:2] == ["System", "both:all"]
    assert page.texts("#suites thead th") == ["System", "both:all", "both:all questions"]
    assert page.texts("#groups thead th") == ["level", *SYSTEMS, "Rows"]
    assert page.texts("#groups tbody th") == [*LEVELS]
    assert " to " in page.texts("#groups tbody .interval")[0]
    assert all("(few)" in text for text in page.texts("#groups tbody td:last-child"))

    page.until("#heat svg")
    # Two datasets are two grids: a mean over both would be of neither.
    assert page.texts("#heat figcaption") == [
        f"{system} on {dataset}" for dataset in ("long-notes", "mini-qa") for system in SYSTEMS
    ]
    cells = page.all("#heat figure:nth-of-type(1) svg [aria-label=cell] rect")
    assert len(cells) == 2 * 3
    assert "at depth" in page.one("#heat svg [aria-label=cell] title").get_attribute("textContent")

    page.one(".by-group summary").click()
    lines = page.texts(".by-group tbody tr")
    assert len(lines) == 2 * 3
    assert "Holm for all groups of level" in page.texts(".by-group .note")[0]
    assert page.complaints() == []


def test_many_datasets_are_listed_below_each_other(page: Page) -> None:
    def spread(row: EvalRow) -> None:
        row.dataset = f"part-{row.ordinal % 12}"

    page.open(story(change=spread))
    assert page.texts("#parts thead th") == ["Dataset", *SYSTEMS]
    assert sorted(page.texts("#parts tbody th")) == sorted(f"part-{n}" for n in range(12))
    assert page.all("#datasets") == []


def test_a_run_without_groups_has_no_empty_sections(page: Page) -> None:
    report = story()
    summary = {
        system: {key: value for key, value in values.items() if not key.startswith("group")}
        for system, values in report.run.summary.items()
    }
    page.open(replace(report, run=replace(report.run, summary=summary)))
    assert page.all("#groups, #suites, #heat, .by-group") == []
