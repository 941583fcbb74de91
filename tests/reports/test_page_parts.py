"""The page's data, piece by piece."""

import gzip
import json
import random
import re
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from cbench_server.reports import page_rows
from cbench_server.reports.chunks import Chunks
from cbench_server.reports.distributions import bin_counts, bin_edges, stage_times
from cbench_server.reports.page import to_html
from cbench_server.reports.page_rows import page_text, snippet, text_limit
from cbench_server.reports.report import Report
from cbench_server.reports.tally import tally
from cbench_server.results import EvalRow
from cbench_server.spec import RunState
from tests.reports.stories import Example, story


def parts(report: Report) -> dict[str, Any]:
    """Read back what the page carries, by the id of the element."""
    document = "".join(to_html(report))
    found: dict[str, Any] = {}
    for kind, name, content in re.findall(
        r'<script type="application/(gzip|json)" id="([^"]+)">([^<]*)</script>', document
    ):
        text = gzip.decompress(b64decode(content)).decode() if kind == "gzip" else content
        found[name] = json.loads(text)
    return found


def test_every_row_and_every_example_can_be_found_again() -> None:
    found = parts(story(40))
    index = found["index"]
    assert len(index["rows"]["system"]) == 120
    assert len(index["examples"]["id"]) == 40
    bodies = [body for name in found if name.startswith("row-") for body in found[name]]
    originals = [text for name in found if name.startswith("example-") for text in found[name]]
    for row, body in enumerate(bodies):
        original = originals[index["rows"]["example"][row]]
        asked = index["examples"]["asked"][index["rows"]["example"][row]]
        assert original["question"][0] == asked
        assert bool(body["failure"]) == (index["rows"]["failure"][row] is not None)


def test_chunks_tell_where_each_record_is() -> None:
    chunks = Chunks("row")
    elements = [*(e for number in range(40) for e in chunks.add({"n": number, "x": "y" * 20_000}))]
    elements += chunks.flush()
    assert len(elements) == len(chunks.starts) > 1
    for element, start in zip(elements, chunks.starts, strict=True):
        packed = element.partition(">")[2].partition("<")[0]
        assert json.loads(gzip.decompress(b64decode(packed)))[0]["n"] == start


def test_the_same_run_gives_the_same_page() -> None:
    assert "".join(to_html(story(8))) == "".join(to_html(story(8)))


def test_an_original_is_carried_once_for_all_systems() -> None:
    marker = "a sentence that no other text has"
    found = parts(story(3, ("identity", "other"), context=lambda number: f"{marker} {number}"))
    originals = json.dumps([found[name] for name in found if name.startswith("example-")])
    assert originals.count(marker) == 3
    identity = found["row-0"][0]
    assert "context" in identity["kept"]
    assert "context" not in identity["fields"]


def test_a_page_holds_so_many_rows_and_says_of_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_rows, "ROWS_SHOWN", 10)
    found = parts(story(40))
    assert found["report"]["shown"]["rows"] == 9
    assert found["report"]["run"]["rows"] == 120
    assert found["index"]["rows"]["example"] == [0, 1, 2] * 3


def test_numbers_without_a_value_are_null() -> None:
    def change(row: EvalRow) -> None:
        if row.scores:
            row.scores["f1"] = float("nan")

    found = parts(story(4, change=change))
    assert found["index"]["rows"]["score"] == [None] * 12


def test_a_run_of_one_system_has_nothing_to_compare() -> None:
    assert parts(story(4, ("alone",)))["report"]["comparison"] is None


def test_a_run_without_rows_is_a_page_too() -> None:
    report = story(0)
    run = replace(report.run, summary={}, state=RunState.RUNNING, end_time=None)
    found = parts(replace(report, run=run))
    assert found["index"]["rows"]["system"] == []
    assert found["report"]["comparison"] is None


def test_failures_are_counted_by_reason_most_frequent_first() -> None:
    failures = parts(story(100))["report"]["failures"]
    assert [line["count"] for line in failures] == sorted(
        (line["count"] for line in failures), reverse=True
    )
    assert sum(line["count"] for line in failures) == 8
    assert {line["reason"] for line in failures} == {"DEADLINE_EXCEEDED", "UNAVAILABLE"}


def test_what_evaluators_failed_at_is_counted_apart() -> None:
    from cbench_server.results import Failure

    def change(row: EvalRow) -> None:
        row.evaluator_failures = {"llm-judge": Failure("evaluator", "JUDGE_SILENT", "no answer")}

    failures = parts(story(4, ("alone",), change=change))["report"]["failures"]
    assert [(line["what"], line["reason"], line["count"]) for line in failures] == [
        ("evaluator", "JUDGE_SILENT", 4)
    ]


@pytest.mark.parametrize(
    ("values", "edges"),
    [([0.0, 1.0, 1.0], 3), ([], 3), ([0.5], 21), ([1.0, 5.0], 21), ([-1.0, 0.2], 21)],
    ids=["binary", "none", "share", "rating", "negative"],
)
def test_bins_hold_every_value(values: list[float], edges: int) -> None:
    borders = bin_edges(values)
    assert len(borders) == edges
    assert sum(bin_counts(values, borders)) == len(values)


def test_a_value_is_in_the_bin_between_its_borders() -> None:
    draw = random.Random(1)
    values = [draw.uniform(-2, 7) for _ in range(500)]
    borders = bin_edges(values)
    for value in values:
        counts = bin_counts([value], borders)
        place = counts.index(1)
        assert borders[place] - 1e-9 <= value <= borders[place + 1] + 1e-9


def test_times_are_given_by_stage_up_to_the_slowest() -> None:
    report = story(20, ("alone",))
    rows = list(report.rows())
    [queue, system, scoring] = stage_times(tally(rows), ("alone",))
    assert [line["stage"] for line in (queue, system, scoring)] == ["queue", "system", "scoring"]
    assert system["seconds"][-1] == max(row.latency for row in rows)
    assert system["seconds"] == sorted(system["seconds"])


def test_a_call_that_timed_out_counts_with_its_time_as_in_the_summary() -> None:
    def change(row: EvalRow) -> None:
        if row.failure:
            row.latency = 60.0

    report = story(100, change=change)
    lines = stage_times(tally(report.rows()), report.run.systems)
    [slowest] = [
        line for line in lines if (line["system"], line["stage"]) == ("extractive", "system")
    ]
    summary = report.run.summary["extractive"]
    assert slowest["seconds"] == [
        summary[key] for key in ("latency_median", "latency_p95", "latency_p99", "latency_max")
    ]
    assert slowest["seconds"][-1] == 60.0


@pytest.mark.parametrize(
    ("rows", "limit"), [(0, 20_000), (4_000, 20_000), (20_000, 4_000), (10**6, 2_000)]
)
def test_the_more_rows_the_shorter_their_texts(rows: int, limit: int) -> None:
    assert text_limit(rows) == limit


def test_texts_say_what_they_are_and_what_is_missing() -> None:
    assert page_text("abcdef", 4) == ("abcd", 0, 2)
    assert page_text(["a"], 100) == ('[\n  "a"\n]', 1, 0)
    assert page_text(None, 100) == ("null", 1, 0)
    assert snippet("  two\nlines  ", 20) == "two lines"
    assert snippet("x" * 100, 10) == "x" * 9 + "…"
    assert snippet(["not", "text"], 10) == ""


def test_references_are_named_so_that_the_page_can_set_them_apart() -> None:
    def answer(row: EvalRow, original: Example) -> Example:
        return {"response": "yes"}

    assert parts(story(2, answer=answer))["report"]["references"] == ["answer", "answers"]
