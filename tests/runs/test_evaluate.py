"""`evaluate()`: the pipeline of the seeds, for systems that are Python objects."""

import asyncio
import json
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from cbench_server import EvalResult, evaluate
from cbench_server.errors import BadDataset, InvalidSpec, UnknownName
from cbench_server.evaluators import AnswerQuality
from cbench_server.metrics import CompressionRatio, CostOfPass, Latency, MeanScore, PassRate

Example = dict[str, Any]
DATASET: list[Example] = [
    {"id": number, "context": f"Fact {number}.", "question": "Which?", "answer": "Paris"}
    for number in range(6)
]


class Fixed:
    """Answers the same, and counts its calls."""

    def __init__(self, name: str = "fixed", response: str = "The capital is Paris.") -> None:
        self.name = name
        self.response = response
        self._seen: list[Example] = []
        self.calls = 0

    def process(self, example: Example) -> Example:
        self.calls += 1
        return {**example, "response": self.response}


def run(*systems: Any, **options: Any) -> EvalResult:
    defaults: dict[str, Any] = {
        "dataset": DATASET,
        "evaluators": [AnswerQuality()],
        "metrics": [MeanScore(score_field="f1")],
        "progress": False,
    }
    return evaluate(list(systems), **{**defaults, **options})


def test_the_four_stages_give_rows_and_a_summary() -> None:
    result = run(
        Fixed(), metrics=[MeanScore(score_field="f1"), PassRate(score_field="f1"), Latency()]
    )
    assert [row.example_id for row in result.rows] == [0, 1, 2, 3, 4, 5]
    assert result.rows[0].scores == {"f1": 0.5, "exact_match": 0.0, "recall": 1.0, "contains": 1.0}
    assert result.summary["fixed"]["mean_score"] == 0.5
    assert result.summary["fixed"]["pass_rate"] == 0.0
    assert set(result.timing) == {"fixed"}
    assert result.config["num_examples"] == 6


def test_rows_are_in_dataset_order_per_system_whatever_finishes_first() -> None:
    class Late(Fixed):
        def process(self, example: Example) -> Example:
            threading.Event().wait(0.02 if example["id"] % 2 else 0.0)
            return super().process(example)

    result = run(Late("a"), Late("b"), max_workers=4)
    assert [(row.system, row.example_id) for row in result.rows] == [
        (system, number) for system in "ab" for number in range(6)
    ]


def test_a_system_that_raises_costs_its_row_only() -> None:
    class Picky(Fixed):
        def process(self, example: Example) -> Example:
            if example["id"] == 3:
                raise ValueError("not this one")
            return super().process(example)

    result = run(Picky())
    failure = result.rows[3].failure
    assert failure is not None
    assert (failure.origin, failure.reason) == ("system", "EXCEPTION")
    assert "not this one" in failure.message
    assert result.rows[3].scores == {}
    assert [row.failure for row in result.rows].count(None) == 5
    assert result.summary["fixed"]["num_failed"] == 1
    assert result.summary["fixed"]["mean_score_with_failures"] == pytest.approx(5 * 0.5 / 6)


def test_a_system_cannot_change_what_is_scored_or_what_others_see() -> None:
    class Cheat(Fixed):
        def process(self, example: Example) -> Example:
            example["answer"] = "The capital is Paris."
            return super().process(example)

    result = run(Cheat("cheat"), Fixed("honest"))
    assert {row.scores["exact_match"] for row in result.rows} == {0.0}


def test_blind_withholds_references_and_otherwise_all_is_handed_over() -> None:
    class Spy(Fixed):
        def process(self, example: Example) -> Example:
            return {**example, "response": " ".join(sorted(example))}

    responses = [
        (run(Spy(), blind=blind).rows[0].processed or {})["response"] for blind in (True, False)
    ]
    assert responses == ["context id question", "answer context id question"]


def test_a_notebook_that_has_an_event_loop_can_call_it() -> None:
    class Async(Fixed):
        async def aprocess(self, example: Example) -> Example:
            await asyncio.sleep(0)
            return {**example, "response": "Paris"}

    async def cell() -> EvalResult:
        return run(Async())

    assert asyncio.run(cell()).summary["fixed"]["mean_score"] == 1.0


def test_the_cache_makes_only_what_is_missing_and_knows_content_from_name(tmp_path: Path) -> None:
    first, again = Fixed(), Fixed()
    options: dict[str, Any] = {"cache_dir": str(tmp_path)}
    run(first, **options)
    result = run(again, **options)
    assert (first.calls, again.calls) == (6, 0)
    assert all(row.reused for row in result.rows)
    assert result.summary["fixed"]["mean_score"] == 0.5

    other = Fixed(response="Rome")
    assert run(other, **options).summary["fixed"]["mean_score"] == 0.0
    assert other.calls == 6

    more = Fixed()
    changed = [{**DATASET[0], "answer": "Rome"}, *DATASET[1:], {**DATASET[0], "id": 99}]
    assert len(run(more, dataset=changed, **options).rows) == 7
    assert more.calls == 2


def test_failed_rows_are_not_cached(tmp_path: Path) -> None:
    class Recovering(Fixed):
        def process(self, example: Example) -> Example:
            if not (tmp_path / "well").exists():
                raise ValueError("ill")
            return super().process(example)

    folder = str(tmp_path / "cache")
    assert run(Recovering(), cache_dir=folder).summary["fixed"]["num_failed"] == 6
    (tmp_path / "well").touch()
    assert run(Recovering(), cache_dir=folder).summary["fixed"]["num_failed"] == 0


def test_tokens_are_those_of_the_dicts_handed_over_and_returned() -> None:
    result = run(Fixed(), dataset=DATASET[:1], tokenizer="whitespace")
    # "Fact 0." + "Which?" + "Paris", then the response's four words as well.
    assert (result.rows[0].input_tokens, result.rows[0].output_tokens) == (4, 8)
    narrow = run(Fixed(), dataset=DATASET[:1], tokenizer=len, text_fields=["context", "response"])
    assert (narrow.rows[0].input_tokens, narrow.rows[0].output_tokens) == (7, 28)


def test_what_an_answering_system_read_is_unknown_unless_it_returns_another_context() -> None:
    class Cuts(Fixed):
        def process(self, example: Example) -> Example:
            return {**super().process(example), "context": "Fact"}

    class OnlyCuts:
        name = "only-cuts"

        def process(self, example: Example) -> Example:
            return {**example, "context": "Fact"}

    def counts(system: Any) -> Any:
        metrics = [CompressionRatio()]
        result = run(system, dataset=DATASET[:1], tokenizer="whitespace", metrics=metrics)
        (row,) = result.rows
        return row.context_tokens_in, row.context_tokens_out, result.summary[row.system]

    before, after, values = counts(Fixed())
    assert (before, after, values["context_compression"]) == (None, None, None)
    assert values["mean_context_tokens_in"] is None
    for system in (Cuts(), OnlyCuts()):
        before, after, values = counts(system)
        assert (before, after, values["context_compression"]) == (2, 1, 0.5)
        assert (values["mean_context_tokens_in"], values["mean_context_tokens_out"]) == (2, 1)


def test_a_question_that_is_the_context_is_handed_over_once() -> None:
    class Sees(Fixed):
        seen: ClassVar[list[Example]] = []

        def process(self, example: Example) -> Example:
            self.seen.append(example)
            return super().process(example)

    text = "What is the capital of France?"
    examples = [
        {"id": 1, "context": text, "question": f" {text}\n", "answer": "Paris"},
        {"id": 2, "context": "Paris is big.", "question": text, "answer": "Paris"},
    ]
    result = run(Sees(), dataset=examples, tokenizer="whitespace", blind=True)
    seen = sorted(Sees.seen, key=lambda example: example["id"])
    assert [sorted(example) for example in seen] == [
        ["context", "id"],
        ["context", "id", "question"],
    ]
    assert [row.input_tokens for row in result.rows] == [6, 9]


def test_filter_recomputes_the_summary() -> None:
    class Half(Fixed):
        def process(self, example: Example) -> Example:
            return {**example, "response": "Paris" if example["id"] < 3 else "Rome"}

    dataset = [{**example, "dataset": "ab"[example["id"] >= 3]} for example in DATASET]
    result = run(Half(), Fixed("other"), dataset=dataset)
    part = result.filter(system="fixed", dataset="a")
    assert [*part.summary] == ["fixed"]
    assert part.summary["fixed"]["mean_score"] == 1.0
    assert part.summary["fixed"]["num_scored"] == 3.0
    assert set(part.timing) == {"fixed"}
    assert result.filter(nonsense=1).rows == []


def test_json_is_strict_even_where_nothing_passes() -> None:
    result = run(Fixed(response="Rome"), metrics=[CostOfPass(score_field="f1")])
    document = json.loads(result.to_json(), parse_constant=lambda text: pytest.fail(text))
    assert document["summary"]["fixed"]["cost_of_pass"] is None
    assert len(document["rows"]) == 6


def test_a_dataframe_has_scores_as_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = run(Fixed()).to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["f1"]) == [0.5] * 6


def test_a_dataframe_may_be_of_polars() -> None:
    polars = pytest.importorskip("polars")
    mixed = run(Fixed(), dataset=DATASET[:2]).rows
    mixed[0].scores["late"] = 1.0
    frame = EvalResult(mixed, {}).to_dataframe("polars")
    assert isinstance(frame, polars.DataFrame)
    assert frame["late"].to_list() == [1.0, None]


def test_a_library_for_dataframes_that_is_missing_is_named() -> None:
    with pytest.raises(ImportError, match="to_dataframe needs modin: pip install modin"):
        EvalResult([], {}).to_dataframe("modin")  # type: ignore[arg-type]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_an_extra_brings_is_asked_for_as_that(
    library: Literal["pandas", "polars"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'pip install "cbench-server\[{library}\]"'):
        EvalResult([], {}).to_dataframe(library)


def test_systems_of_a_result_are_compared() -> None:
    result = run(Fixed(), Fixed("wrong", response="Rome"))
    found = result.compare("fixed", "wrong", "f1")
    assert found.difference.value == 0.5
    assert found.sentence.startswith("fixed is better than wrong on f1 by 50 points")
    assert "<table>" in found._repr_html_()
    assert result.filter(system="fixed").rows[0].system == "fixed"


def test_a_result_without_its_run_says_how_to_compare() -> None:
    with pytest.raises(ValueError, match="compare_two"):
        EvalResult([], {}).compare("a", "b")


def test_a_result_shows_itself_in_a_notebook_as_inert_text() -> None:
    page = run(Fixed("<script>alert(1)</script>"))._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "0.5 (" in page


def test_usage_a_system_reports_is_kept() -> None:
    class Billed(Fixed):
        def process(self, example: Example) -> Example:
            return {**super().process(example), "api_usage": {"prompt_tokens": 7}}

    row = run(Billed(), dataset=DATASET[:1]).rows[0]
    assert row.metadata == {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 0}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"dataset": [DATASET[0], DATASET[0]]}, BadDataset, "positions 0 and 1"),
        ({"dataset": [{"id": 1}]}, BadDataset, '"context" is missing'),
        ({"tokenizer": "cl100k"}, UnknownName, "cl100k_base"),
        ({"max_workers": 0}, InvalidSpec, "max_workers"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        run(Fixed(), **options)


def test_two_systems_need_two_names() -> None:
    with pytest.raises(InvalidSpec, match="different names"):
        run(Fixed(), Fixed())


def test_max_examples_reads_no_further_than_it_must() -> None:
    def endless() -> Any:
        number = 0
        while True:
            yield {"id": number, "context": "c", "answer": "x"}
            number += 1

    assert len(run(Fixed(), dataset=endless(), max_examples=5).rows) == 5
