"""The real rows of public benchmarks, where they lie beside the repository."""

from pathlib import Path

import pytest

from cbench_server.datasets import RECORDS, DatasetRecord, IdLedger, check_example
from cbench_server.evaluators import EVALUATORS

_HUB = Path(__file__).parents[3] / "shared" / "data" / "hub"

pytestmark = pytest.mark.skipif(not _HUB.is_dir(), reason="../shared/data/hub is not here")

# How many examples the stored rows give, by the default config.
_COUNTS = {
    "musique": 100,
    "natural-questions": 200,
    "frames": 200,
    "quality": 36,
    "truthfulqa": 200,
    "mmlu": 228,
    "mmlu-pro": 200,
    "arc-challenge": 200,
    "hellaswag": 200,
    "winogrande": 200,
    "gsm8k": 200,
    "mgsm": 250,
    "humaneval": 164,
    "mbpp": 257,
    "dialogsum": 67,
    "qmsum": 60,
    "scifact": 300,
    "bbh": 200,
    "ifeval": 541,
    "alpaca-eval": 200,
    "mt-bench": 80,
    "bfcl": 400,
    "swebench-verified": 200,
    "swebench-lite": 200,
}
_BY_NAME = {record.name: record for record in RECORDS}


def test_the_rows_stored_here_are_found() -> None:
    found = {r.name for r in RECORDS if r.hub is not None and r.is_available(_HUB)}
    assert found == set(_COUNTS)


@pytest.mark.parametrize("name", _COUNTS)
def test_real_rows_become_complete_examples(name: str) -> None:
    record, seen = _BY_NAME[name], IdLedger()
    examples = [*record.examples(data_dir=_HUB)]
    assert len(examples) == _COUNTS[name]
    for position, example in enumerate(examples):
        check_example(example, position, name, seen)
        assert example["context"].strip()
        for field in {"question", "answer", "correct_letter"} & set(example):
            assert isinstance(example[field], str)
            assert example[field].strip()
        for answer in example.get("answers", []):
            assert isinstance(answer, str)


def _configs() -> list[tuple[DatasetRecord, str]]:
    return [
        (record, config)
        for record in RECORDS
        for config in record.configs
        # The articles of FRAMES are not there.
        if record.hub and record.hub.is_mirrored(config, _HUB) and config != "oracle"
    ]


def test_every_config_stored_here_loads() -> None:
    found = _configs()
    assert len(found) >= 27 + 11 + 5 + 2 + 2
    for record, config in found:
        assert next(record.examples(config, data_dir=_HUB))["context"], f"{record.name}:{config}"


def test_the_labels_of_scifact_are_of_all_three_kinds() -> None:
    labels = {example["answer"] for example in _BY_NAME["scifact"].examples(data_dir=_HUB)}
    assert labels == {"SUPPORTS", "REFUTES", "NOT ENOUGH INFO"}


def test_the_query_of_a_meeting_is_not_left_in_its_transcript() -> None:
    for example in _BY_NAME["qmsum"].examples(data_dir=_HUB):
        assert example["question"] != "Summarize this meeting transcript."
        assert not example["context"].startswith(example["question"])


def test_both_turns_of_mt_bench_are_there() -> None:
    for example in _BY_NAME["mt-bench"].examples(data_dir=_HUB):
        assert [turn["role"] for turn in example["turns"]] == ["user", "user"]
        assert example["context"] == example["turns"][0]["content"]


@pytest.mark.parametrize(
    "name", ["mmlu", "mmlu-pro", "arc-challenge", "quality", "gsm8k", "mgsm", "scifact"]
)
def test_the_right_answer_scores_full_marks(name: str) -> None:
    record = _BY_NAME[name]
    protocol = record.protocol_of()
    made = [EVALUATORS[ref.name](**ref.options) for ref in protocol.evaluators]
    (evaluator,) = (
        each for each in made if protocol.primary_score in {s.name for s in each.score_infos}
    )
    for example in record.examples(data_dir=_HUB):
        right = example.get("correct_letter") or example["answer"]
        scores = evaluator.score(example, {**example, "response": right})
        assert scores[protocol.primary_score] == 1.0, example["id"]
