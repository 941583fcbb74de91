"""Numbers, tables and notes, piece by piece."""

import json
from dataclasses import replace

import pytest

from cbench_server.reports.columns import headline_columns, ordered_keys
from cbench_server.reports.csv_report import to_csv
from cbench_server.reports.json_report import to_json
from cbench_server.reports.markdown import run_to_markdown, to_markdown
from cbench_server.reports.scores import added_scores
from cbench_server.reports.table import RowFacts, headline, notes, state_line, to_table
from cbench_server.results import EvalRow, Failure
from cbench_server.spec import MetricRef, Run, RunNote, RunState
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid, printable, printable_lines, to_text, width


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 us"),
        (0.0000042, "4 us"),
        (0.00999, "10.0 ms"),
        (0.0123, "12 ms"),
        (0.9996, "1.0 s"),
        (99.96, "1 min 40 s"),
        (3599.0, "59 min 59 s"),
        (360000.0, "100 h 00 min"),
        (None, "—"),
        (float("inf"), "—"),
    ],
)
def test_a_span_is_shown_in_the_unit_that_suits_it(seconds: float | None, text: str) -> None:
    assert numbers.seconds(seconds) == text


@pytest.mark.parametrize(
    ("change", "text"), [(-0.494, "-49.4%"), (0.03, "+3.0%"), (-0.0001, "0.0%"), (0.0, "0.0%")]
)
def test_a_change_has_a_sign_unless_it_is_nothing(change: float, text: str) -> None:
    assert numbers.change(change) == text


def test_columns_line_up_with_wide_characters() -> None:
    drawn = to_text(Grid(("名前", "n"), (("système", "1"), ("長い名前", "23"))))
    assert len({width(line) for line in drawn.splitlines()}) == 1


def test_what_a_system_says_cannot_drive_the_terminal() -> None:
    assert printable("a\x1b[31mred\r\nb\x00") == "a�[31mred  b�"
    assert printable_lines("a\tb\nc\x1b") == "a\tb\nc�"


def test_keys_from_elsewhere_get_columns_and_builtin_details_do_not() -> None:
    summary = {"s": {"my_metric": 0.5, "mean_score": 0.5, "latency_p99": 0.1, "dataset:x": 1.0}}
    assert [column.title for column in headline_columns(summary, all_keys=False)] == [
        "Score",
        "my_metric",
    ]


def test_a_run_that_chose_its_metrics_shows_all_their_keys(run: Run) -> None:
    chosen = replace(
        run,
        spec=replace(run.spec, metrics=(MetricRef("cost-of-pass"),)),
        summary={"identity": {"cost_of_pass": 120.0, "num_passing": 3.0}},
        systems=("identity",),
    )
    assert headline(chosen, RowFacts()).header == (
        "System",
        "cost_of_pass",
        "num_passing",
        "Failed",
    )


def test_the_order_of_keys_does_not_depend_on_the_order_they_came_in() -> None:
    keys = ["pass_rate", "zeta", "mean_score", "alpha"]
    assert ordered_keys({"a": keys}) == ordered_keys({"a": keys[::-1]})
    assert ordered_keys({"a": keys}) == ["mean_score", "pass_rate", "alpha", "zeta"]


def test_exposed_references_are_said_aloud(run: Run) -> None:
    exposed = replace(run, spec=replace(run.spec, expose_reference_fields=True))
    assert any("References were exposed" in line for line in notes(exposed, RowFacts()))
    assert not any("References" in line for line in notes(run, RowFacts()))


def test_a_failed_run_says_why_and_how_to_go_on(run: Run) -> None:
    failed = replace(
        run, state=RunState.FAILED, failure=Failure("transport", "SYSTEM_GONE", "it went away.")
    )
    table = to_table(failed, RowFacts())
    assert "it went away." in state_line(failed)
    assert f"cbench resume {run.run_id}" in table


def test_only_the_most_frequent_reasons_are_named(run: Run) -> None:
    failures = {"A": 1, "B": 40, "C": 3, "D": 2}
    lines = notes(run, RowFacts(failures=failures))
    assert any("(B 40, C 3, D 2, ...)" in line for line in lines)


def test_reasons_of_some_failures_are_not_given_for_all(run: Run) -> None:
    progress = {name: replace(each, failed=3) for name, each in run.progress.items()}
    lines = notes(replace(run, progress=progress), RowFacts(failures={"A": 4}))
    assert any(line.startswith("6 rows failed (of the first 4: A 4)") for line in lines)


def test_another_score_is_not_put_down_to_a_missing_response(run: Run) -> None:
    lines = notes(run, RowFacts(scores=dict.fromkeys(run.systems, ("rouge_l_f1",))))
    assert "* rouge_l_f1 stands in for f1: no evaluator gave that." in lines


def test_every_figure_of_a_judge_that_did_not_pass_is_marked(run: Run) -> None:
    judges = [{"evaluator": "llm-judge", "scores": ["judge_score"], "qualified": False}]
    summary = {
        name: {**each, "mean_score:judge_score": 1.0, "num_scored:judge_score": 3.0}
        for name, each in run.summary.items()
    }
    datasets = [{**each, "own_scores": ["f1"]} for each in run.config["datasets"]]
    config = {**run.config, "judges": judges, "datasets": datasets}
    judged = replace(run, summary=summary, config=config)
    titles = headline(judged, RowFacts()).header
    assert [title for title in titles if "judge" in title] == ["judge_score†"]
    others = added_scores(judged)
    assert others is not None
    assert {row[1] for row in others.rows} == {"judge_score†"}


def test_notes_are_shown_wherever_a_run_has_them(run: Run) -> None:
    """Earlier versions had some of them in the config."""
    noted = replace(
        run,
        config={**run.config, "notices": ["No headline score, said long ago."]},
        notes=(RunNote("NO_REFERENCES", "No headline score, said today."),),
    )
    lines = notes(noted, RowFacts())
    assert "No headline score, said long ago." in lines
    assert "No headline score, said today." in lines
    assert "\n- No headline score, said today.\n" in run_to_markdown(noted)


def test_nothing_is_said_of_questions_without_an_answer_where_all_of_them_failed(run: Run) -> None:
    lines = notes(run, RowFacts(scores=dict.fromkeys(run.systems, ("f1", "abstention"))))
    assert lines
    assert not any("the score is abstention" in line for line in lines)


def test_questions_without_an_answer_are_counted_where_abstention_is_their_score(run: Run) -> None:
    summary = {name: {**each, "num_scored:abstention": 3.0} for name, each in run.summary.items()}
    rows = max(each.completed for each in run.progress.values())
    lines = notes(
        replace(run, summary=summary),
        RowFacts(scores=dict.fromkeys(run.systems, ("f1", "abstention"))),
    )
    assert (
        f"* On 3 of {rows:,} rows the score is abstention, not f1: the dataset marks these "
        "questions as having no answer, and a response that says so is right."
    ) in lines


def test_a_chosen_score_that_no_row_has_is_named(run: Run) -> None:
    chosen = replace(run, spec=replace(run.spec, score_field="f2"))
    assert not any("No row has" in line for line in notes(chosen, RowFacts()))
    none = replace(chosen, summary={name: {"num_scored": 0.0} for name in run.systems})
    assert any('No row has the score "f2"' in line for line in notes(none, RowFacts()))


def test_a_run_without_rows_shows_no_table(run: Run) -> None:
    empty = replace(run, progress={}, total_rows=None, state=RunState.RUNNING, end_time=None)
    assert to_table(empty, RowFacts()).splitlines()[-1] == f"Run {run.run_id} running, 0 rows"
    assert "System" not in to_table(empty, RowFacts())


def test_one_score_for_all_systems_heads_its_column(run: Run) -> None:
    same = RowFacts(scores={"go-truncate|v2": ("f1",), "identity": ("f1",)})
    assert headline(run, same).header[1] == "f1*"
    official = replace(run, config={"datasets": run.config["datasets"][:1]})
    assert headline(official, same).header[1] == "f1"


def test_json_without_rows_is_valid_too(run: Run) -> None:
    document = json.loads("".join(to_json(run, [])))
    assert document["rows"] == []
    assert document["summary"]["go-truncate|v2"]["cost_of_pass"] is None


def test_the_name_of_a_score_is_no_formula_either(rows: list[EvalRow]) -> None:
    named = [replace(row, scores={"=cmd()": 1.0}) for row in rows]
    assert ",'=cmd()," in next(to_csv(lambda: named))


def test_csv_reads_rows_twice_and_holds_none(rows: list[EvalRow]) -> None:
    reads = []

    def read() -> list[EvalRow]:
        reads.append(1)
        return rows

    lines = list(to_csv(read))
    assert len(reads) == 2
    assert len(lines) == 1 + len(rows)
    assert "nan" not in "".join(lines)


@pytest.mark.parametrize(
    ("summary", "words"), [({}, "There are no results."), ({"s": {}}, "There are no metrics.")]
)
def test_markdown_says_so_where_there_is_nothing(
    summary: dict[str, dict[str, float | None]], words: str
) -> None:
    assert words in to_markdown(summary, {}, 0)


def test_markdown_disarms_names() -> None:
    text = to_markdown({"a|b <img> `x` *y*": {"f1": 0.5}}, {}, 1)
    assert "| a\\|b \\<img\\> \\`x\\` \\*y\\* | 0.5000 |" in text
