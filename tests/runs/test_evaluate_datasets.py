"""`evaluate()` by the name of a dataset or a file: wired, tagged and recorded as by the command."""

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, row_to_dict
from cbench_server import EvalResult, evaluate, evaluate_memory
from cbench_server.daemon.embedded import embedded
from cbench_server.errors import CbenchError, InvalidInput, InvalidSpec
from cbench_server.evaluators import AnswerQuality, MultipleChoiceAccuracy
from cbench_server.metrics import MeanScore
from cbench_server.registry import load_dataset, register_dataset
from cbench_server.rpc.runs import run_from_proto
from cbench_server.systems.controls import TruncateHead
from cbench_server.systems.memories import FullHistory
from cbench_server.types import ScoreInfo
from tests.datasets.test_records import FIXTURES

Example = dict[str, Any]
EXAMPLES = [
    {"id": str(number), "context": f"Fact {number} is Paris.", "answer": "Paris", "question": "?"}
    for number in range(3)
]


class Says:
    def __init__(self, response: str = "Paris", name: str = "says") -> None:
        self.name = name
        self.response = response

    def process(self, example: Example) -> Example:
        return {**example, "response": self.response}


class Unannounced:
    """An evaluator that does not say what it gives."""

    name = "unannounced"

    def score(self, original: Example, processed: Example) -> dict[str, float]:
        return {"length": min(1.0, len(processed["response"]) / 10)}


def run(*systems: Any, **options: Any) -> EvalResult:
    return evaluate(list(systems) or [Says()], **{"progress": False, **options})


def test_a_dataset_brings_its_evaluators_and_the_score_that_counts() -> None:
    result = run(Says("B"), dataset="mini-choice", max_examples=4)
    assert {row.dataset for row in result.rows} == {"mini-choice"}
    assert {row.primary_score for row in result.rows} == {"mc_accuracy"}
    assert result.config["evaluators"] == ["answer-quality", "multiple-choice", "context-retention"]
    summary = result.summary["says"]
    assert summary["mean_score"] == summary["mean_score:mc_accuracy"]
    assert result.config["headlines"] == {"says": ["mc_accuracy"]}


@pytest.mark.parametrize("given", ["mini-choice", load_dataset("mini-choice")])
def test_systems_are_compared_on_the_dataset_s_score(given: Any) -> None:
    result = run(
        Says("A", "a"),
        Says("B", "b"),
        dataset=given,
        evaluators=[AnswerQuality(), MultipleChoiceAccuracy()],
    )
    found = result.compare("a", "b")
    assert found.score == "mc_accuracy"
    means = {each: result.summary[each]["mean_score"] for each in "ab"}
    assert (found.mean_a, found.mean_b) == (means["a"], means["b"])
    assert means["a"] != means["b"]


def test_no_evaluators_is_not_the_same_as_those_of_the_dataset() -> None:
    result = run(dataset="mini-qa", max_examples=2, evaluators=[], metrics=[])
    assert [row.scores for row in result.rows] == [{}, {}]
    assert (result.summary, result.config["evaluators"]) == ({"says": {}}, [])


def test_a_list_replaces_and_its_first_score_counts_if_the_dataset_s_is_not_there() -> None:
    with pytest.warns(UserWarning, match="what mc_accuracy is scored by"):
        result = run(dataset="mini-qa", max_examples=2, evaluators=[MultipleChoiceAccuracy()])
    assert {row.primary_score for row in result.rows} == {"mc_accuracy"}
    result = run(dataset=EXAMPLES, evaluators=[Unannounced()], metrics=[MeanScore()])
    assert result.summary["says"]["mean_score"] == 0.5
    assert result.config["headlines"] == {"says": ["length"]}


def test_a_score_may_be_chosen() -> None:
    result = run(dataset=EXAMPLES, score_field="recall")
    assert result.config["headlines"] == {"says": ["recall"]}
    with pytest.raises(InvalidSpec, match='gives "recal". Did you mean "recall"?'):
        run(dataset=EXAMPLES, score_field="recal")


def test_the_same_rows_as_the_command_makes(tmp_path: Path) -> None:
    here = run(TruncateHead(ratio=0.5), dataset="mini-qa", blind=True)
    spec = {
        "systems": [{"builtin": "truncate-head", "options": {"ratio": 0.5}}],
        "datasets": [{"name": "mini-qa"}],
    }
    with embedded(home=str(tmp_path)) as target, BenchClient(target) as client:
        *_, last = client.evaluate(spec)
        there = run_from_proto(last.finished)
        rows = [row_to_dict(row) for row in client.rows(there.run_id)]
    assert [(row.example_id, row.scores) for row in here.rows] == [
        (row["example_id"], row["scores"]) for row in rows
    ]
    ours, theirs = here.summary["truncate-head"], there.summary["truncate-head"]
    for key in ("mean_score_with_failures", "pass_rate", "context_compression", "num_scored"):
        assert theirs[key] == pytest.approx(ours[key])
    assert here.config["datasets"][0]["evaluators"] == there.config["datasets"][0]["evaluators"]


def write(folder: Path, suffix: str) -> Path:
    path = folder / f"mine{suffix}"
    lines = "\n".join(map(json.dumps, EXAMPLES))
    table = ["id,context,answer,question", *(",".join(each.values()) for each in EXAMPLES)]
    texts = {
        ".jsonl": lines,
        ".json": json.dumps(EXAMPLES),
        ".csv": "\n".join(table),
        ".tsv": "\n".join(table).replace(",", "\t"),
    }
    plain = suffix.removesuffix(".gz")
    if plain == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(EXAMPLES), path)
    elif suffix.endswith(".gz"):
        path.write_bytes(gzip.compress(texts[plain].encode()))
    else:
        path.write_text(texts[plain])
    return path


@pytest.mark.parametrize(
    "suffix",
    [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".jsonl.gz", ".json.gz", ".csv.gz", ".tsv.gz"],
)
def test_a_file_is_a_dataset(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, suffix)
    for given in (path, str(path), load_dataset(path)):
        result = run(dataset=given)
        assert [row.example_id for row in result.rows] == ["0", "1", "2"]
        assert {row.dataset for row in result.rows} == {"mine"}
        assert result.summary["says"]["mean_score"] == 1.0
    assert len(list(load_dataset(path, n=2))) == 2


def test_several_datasets_and_two_files_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    one, other = write(tmp_path, ".jsonl"), write(tmp_path / "a", ".csv")
    with pytest.raises(InvalidSpec, match=r"got mine, mine.*tag="):
        run(dataset=[one, other])
    result = run(dataset=[one, load_dataset(other, tag="theirs"), "mini-choice"], max_examples=2)
    assert [row.dataset for row in result.rows] == ["mine"] * 2 + ["theirs"] * 2 + [
        "mini-choice"
    ] * 2
    assert result.summary["says"]["dataset:theirs"] == 1.0
    assert [each["primary_score"] for each in result.config["datasets"]] == [
        "f1",
        "f1",
        "mc_accuracy",
    ]


def test_a_loaded_dataset_can_be_read_again() -> None:
    loaded = load_dataset("mini-qa", n=2)
    assert [*loaded] == [*loaded] != []


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({}, "Of 500 questions 2 were there."),
        ({"max_examples": 1}, "Of the examples at most 1 were asked for."),
        ({"question_types": ["multi-session"]}, "Of the questions those of multi-session were"),
    ],
    ids=["all", "some", "types"],
)
def test_a_part_of_the_questions_is_told(limits: dict[str, Any], why: str) -> None:
    loaded = load_dataset("longmemeval", data_dir=FIXTURES)
    described = evaluate_memory([FullHistory()], loaded, **limits).config["datasets"][0]
    said = described["protocol"]["axes"]["data"]
    assert (said["status"], said["why"][: len(why)]) == ("differs", why)
    assert said["why"].count("Of ") == 1


def test_a_registered_function_is_known_by_its_name() -> None:
    register_dataset("some-of-mine", lambda: iter(EXAMPLES))
    result = run(dataset="some-of-mine")
    assert {row.dataset for row in result.rows} == {"some-of-mine"}
    assert result.config["datasets"][0]["label"] == "some-of-mine"


def test_the_config_says_what_is_needed_to_do_it_again() -> None:
    result = run(Says(), Says("Rome", "rome"), dataset=["mini-qa", "mini-choice"], max_examples=2)
    config = result.config
    first = config["datasets"][0]
    assert (first["label"], first["num_examples"], len(first["digest"])) == ("mini-qa", 2, 64)
    assert first["evaluators"][0]["options"] == {"strip_thinking": True}
    assert first["evaluators"][0]["version"]
    assert config["started_at"] <= config["ended_at"]
    part = result.filter(system="rome", dataset="mini-choice")
    assert part.config["systems"] == ["rome"]
    assert [each["label"] for each in part.config["datasets"]] == ["mini-choice"]
    assert (part.config["num_examples"], config["num_examples"]) == (2, 4)
    assert part.config["headlines"] == {"rome": ["mc_accuracy"]}
    assert part.config["filter"] == {"system": "rome", "dataset": "mini-choice"}
    again = run(Says(), dataset="mini-qa", max_examples=2).config["datasets"][0]
    assert again["digest"] == first["digest"]
    json.loads(part.to_json())


def test_that_nothing_can_be_scored_is_said_before_the_first_call() -> None:
    calls: list[str] = []

    class Notes(Says):
        def process(self, example: Example) -> Example:
            calls.append("called")
            return super().process(example)

    bare = [{"id": number, "context": "c", "answer": ""} for number in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="No headline score: no example has what f1"):
            run(Notes(), dataset=bare)
    assert calls == []
    with pytest.warns(UserWarning, match="No headline"):
        summary = run(Notes(), dataset=bare).summary["says"]
    assert (summary["mean_score_with_failures"], summary["num_not_applicable"]) == (None, 2.0)


class Forgets:
    name = "forgets"

    def score(self, original: Example, processed: Example) -> dict[str, float]:
        return {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"systems": Says()}, "give a list"),
        ({"systems": "truncate-head"}, "give a list"),
        ({"systems": ["truncate-head"]}, r'"truncate-head" is a text.*create_system'),
        ({"systems": [Says]}, r"Says is a class.*Says\("),
        ({"systems": [len]}, "len is a function"),
        ({"systems": [object()]}, "no `name`, a text and no process"),
        ({"systems": []}, "no system"),
        ({"evaluators": [AnswerQuality]}, r"AnswerQuality is a class.*AnswerQuality\("),
        ({"evaluators": ["answer-quality"]}, "create_evaluator"),
        ({"evaluators": AnswerQuality()}, "give a list"),
        ({"metrics": [MeanScore]}, "MeanScore is a class"),
        ({"metrics": [Forgets()]}, r"no compute\(rows\)"),
        ({"dataset": EXAMPLES[0]}, r"one example; write \[example\]"),
        ({"dataset": 7}, "type int"),
        ({"dataset": [1, 2]}, "a int at position 0, 1; each example is a dict"),
        ({"dataset": "mini-qo"}, "mini-qa"),
        ({"dataset": "mmlu:nonsense"}, "no config"),
        ({"dataset": "gone.jsonl"}, "does not exist"),
        ({"dataset": "a/b.docx"}, "format"),
        ({"max_examples": 0}, "max_examples must be at least 1"),
        ({"timeout": 0}, "timeout"),
        ({"max_workers": "many"}, "must be a number"),
        ({"cache_dir": __file__}, "cache_dir"),
    ],
)
def test_misuse_gets_a_sentence(options: dict[str, Any], said: str) -> None:
    given = {"systems": [Says()], "dataset": EXAMPLES, "progress": False, **options}
    with pytest.raises(CbenchError, match=said):
        evaluate(**given)


def test_a_file_has_few_options(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match='no option "split"'):
        load_dataset(write(tmp_path, ".csv"), split="test")


def test_a_memory_dataset_by_name_is_wired_too() -> None:
    name = "mini-memory"
    result = evaluate_memory([FullHistory], name, max_examples=1, progress=False)
    assert {row.dataset for row in result.rows} == {name}
    assert "abstention" in result.config["evaluators"]
    assert "mean_score_with_failures" in result.summary["full-history"]
    assert result.config["num_examples"] == 1


def test_a_metric_that_raises_costs_only_itself() -> None:
    class Broken:
        name = "broken"

        def compute(self, rows: Any) -> dict[str, float]:
            raise ZeroDivisionError("nothing there")

    result = run(dataset=EXAMPLES, metrics=[Broken(), MeanScore()])
    assert result.summary["says"]["mean_score"] == 1.0
    assert "nothing there" in result.config["metric_failures"]["broken"]


def test_a_worst_value_that_an_evaluator_declares_counts() -> None:
    class Distance:
        name = "distance"
        score_infos = (ScoreInfo("distance", "", higher_is_better=False, worst=9.0),)

        def score(self, original: Example, processed: Example) -> dict[str, float]:
            return {"distance": 1.0}

    class Fails(Says):
        def process(self, example: Example) -> Example:
            if example["id"] == "0":
                raise ValueError("no")
            return super().process(example)

    summary = run(Fails(), dataset=EXAMPLES, evaluators=[Distance()]).summary["says"]
    assert summary["mean_score_with_failures"] == pytest.approx(11 / 3)


_FIXTURES = Path(__file__).parents[1] / "datasets" / "fixtures"


@pytest.mark.parametrize("name", ["swebench", "swebench-verified", "swebench-lite", "alpaca-eval"])
def test_a_benchmark_without_an_honest_figure_has_no_headline(name: str) -> None:
    """Not even the first score that happens to be there: by f1 a reversed patch is right."""

    class Gold(Says):
        def process(self, example: Example) -> Example:
            return {**example, "response": example["answer"]}

    dataset = load_dataset(name, data_dir=str(_FIXTURES))
    result = evaluate([Gold(name="gold")], dataset, progress=False)
    assert {row.primary_score for row in result.rows} == {""}
    assert result.summary["gold"]["mean_score"] is None
