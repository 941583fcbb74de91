"""Rows for other programs: JUnit and Parquet."""

import io
import xml.etree.ElementTree as ElementTree

import pyarrow.parquet
import pytest

from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality
from cbench_server.metrics import MeanScore
from cbench_server.registry import Registry, registry
from cbench_server.reports.formats import REPORTERS, SUFFIXES
from cbench_server.reports.junit import to_junit
from cbench_server.reports.parquet import to_parquet
from cbench_server.reports.report import Report
from cbench_server.reports.reporters import render
from cbench_server.results import EvalRow, Failure
from tests.reports.browsing import Page
from tests.reports.stories import Example, story


def _table(rows: list[EvalRow]) -> pyarrow.Table:
    return pyarrow.parquet.read_table(io.BytesIO(b"".join(to_parquet(lambda: rows))))


def test_junit_counts_what_it_lists() -> None:
    report = story(26)
    document = ElementTree.fromstring("".join(to_junit(report.rows, 0.7)))
    suites = document.findall("testsuite")
    assert len(suites) == 6  # three systems on two datasets
    for suite in suites:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("errors") == str(len(suite.findall("testcase/error")))
    rows = list(report.rows())
    errors = document.findall(".//error")
    assert len(errors) == sum(row.failure is not None for row in rows)
    missed = [row for row in rows if row.score is not None and row.score < 0.7]
    assert len(document.findall(".//failure")) == len(missed)


@pytest.mark.parametrize("text", ["a\x00b\x1b", "<&\"'>", "\ud800", "]]>", "x" * 100_000])
def test_junit_can_be_read_whatever_was_said(text: str) -> None:
    row = EvalRow(text, text, {}, 1, 1, dataset=text, failure=Failure("system", text, text))
    document = ElementTree.fromstring("".join(to_junit(lambda: [row], 0.7)).encode())
    assert len(document.findall(".//error")) == 1


def test_a_row_without_its_score_is_skipped_in_junit() -> None:
    row = EvalRow("s", 1, {}, 1, 1, dataset="d")
    document = ElementTree.fromstring("".join(to_junit(lambda: [row], 0.7)))
    assert document.find("testsuite").get("skipped") == "1"  # type: ignore[union-attr]


def test_junit_of_no_rows_has_no_suites() -> None:
    assert len(ElementTree.fromstring("".join(to_junit(list, 0.7)))) == 0


def test_parquet_holds_every_row_in_typed_columns(rows: list[EvalRow]) -> None:
    table = _table(rows)
    assert table.num_rows == len(rows)
    assert table.column("system").to_pylist() == [row.system for row in rows]
    assert table.column("example_id").to_pylist() == [str(row.example_id) for row in rows]
    assert table.column("score:contains").to_pylist() == [1.0, None, None]
    assert table.column("failure").to_pylist() == [None, "DEADLINE_EXCEEDED", None]
    assert str(table.schema.field("latency").type) == "double"


def test_parquet_of_no_rows_has_its_columns() -> None:
    table = _table([])
    assert table.num_rows == 0
    assert "system" in table.column_names


def test_every_suffix_names_a_reporter_and_the_registry_knows_them_all() -> None:
    # What a harness reads has no ending of its own: --format names it.
    assert set(SUFFIXES.values()) == set(REPORTERS) - {
        "swebench",
        "alpaca-eval",
        "mt-bench",
        "longmemeval",
    }
    assert [name for name in registry.list("reporter") if name in REPORTERS] == list(REPORTERS)


def test_a_registered_reporter_is_found() -> None:
    own = Registry()

    def shout(report: Report) -> list[str]:
        return [report.run.run_id.upper()]

    own.register("reporter", "shout", shout)
    assert own.get("reporter", "shout")(story(1)) == ["20260131-120000-000ABCDEF"]


def test_a_result_of_evaluate_is_a_page_too(page: Page) -> None:
    class Half:
        name = "half"

        def process(self, example: Example) -> Example:
            return {**example, "context": example["context"][:9], "response": "a lamp"}

    examples = [{"id": 7, "question": "What?", "context": "It is a lamp.", "answer": "a lamp"}]
    result = evaluate([Half()], examples, [AnswerQuality()], [MeanScore()], progress=False)
    document = render(result, examples=examples)
    assert isinstance(document, str)
    page.open_text(document)
    assert page.texts("h1") == ["Evaluation"]
    page.open_row()
    assert page.one("dialog .diff del").text == "lamp."
    table = render(result, "parquet")
    assert isinstance(table, bytes)
    assert pyarrow.parquet.read_table(io.BytesIO(table)).num_rows == 1
