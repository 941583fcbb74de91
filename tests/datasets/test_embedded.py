"""The embedded datasets: what they hold is right, and scored as the registry says."""

import json
import string
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_client.messages.convert import value_from_proto
from cbench_server.daemon.embedded import embedded
from cbench_server.datasets import RECORDS
from cbench_server.evaluators import (
    EVALUATORS,
    CodeExecution,
    IFEvalChecker,
    MathEquivalence,
    MultipleChoiceAccuracy,
    NLILabelMatch,
    SummarizationQuality,
)
from cbench_server.evaluators.ifeval.official_rules import OFFICIAL_RULES
from cbench_server.metrics.quality import answer_tokens
from tests.fixtures.model_server import ModelServer

_EMBEDDED = {record.name: record for record in RECORDS if record.embedded}
_FOLDER = Path(__file__).parents[2] / "cbench_server" / "datasets" / "embedded"
_RESPONSES = Path(__file__).with_name("instruction_responses.json")

_WIRED = {
    "mini-qa": ("context-retention", "f1"),
    "long-notes": ("context-retention", "f1"),
    "mini-summaries": ("summarization-quality", "rouge_l_f1"),
    "mini-choice": ("multiple-choice", "mc_accuracy"),
    "mini-code": ("code-execution", "pass_at_1"),
    "mini-maths": ("math-equivalence", "math_equiv"),
    "mini-nli": ("nli-label-match", "nli_accuracy"),
    "mini-instructions": ("ifeval", "ifeval_prompt_strict"),
    "mini-chat": ("", "judge_score"),
    "mini-memory": ("abstention", "f1"),
    "long-memory": ("abstention", "f1"),
}

# Evaluators by the rules of one benchmark, which only its own rows fit.
_OF_ONE_BENCHMARK = {
    "bbh",
    "bfcl",
    "drop",
    "helm-f1",
    "hotpotqa",
    "infinitebench",
    "locomo",
    "longbench",
    "musique",
    "nq-open",
    "rouge",
    "string-match",
    "subspan-em",
    "alpaca-eval",
    "swebench",
    "triviaqa",
    "truthfulqa",
}
# Scored where a dataset knows which part of a text holds the answer.
_OF_EVIDENCE = {"evidence-recall"}


def _examples(name: str) -> list[dict[str, Any]]:
    return [*_EMBEDDED[name].examples()]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[BenchClient]:
    with embedded(home=str(tmp_path)) as target, BenchClient(target) as connected:
        yield connected


def test_each_is_wired_with_its_own_evaluators_and_score() -> None:
    assert _EMBEDDED.keys() == _WIRED.keys()
    for name, (evaluator, primary) in _WIRED.items():
        own = [evaluator] if evaluator else []
        assert _EMBEDDED[name].evaluators == ("answer-quality", *own)
        assert _EMBEDDED[name].primary_score == primary
        assert _EMBEDDED[name].family == "embedded"


def test_every_evaluator_that_needs_no_model_has_an_embedded_dataset() -> None:
    wired = {name for record in _EMBEDDED.values() for name in record.evaluators}
    no_model = {name for name, kind in EVALUATORS.items() if not hasattr(kind, "asks_model")}
    assert no_model - _OF_ONE_BENCHMARK - _OF_EVIDENCE == wired


def test_each_runs_in_a_daemon_with_exactly_its_evaluators(client: BenchClient) -> None:
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [
            {"name": name, "max_examples": 5, "as_transcript": name.endswith("-memory")}
            for name in _EMBEDDED
        ],
    }
    run_id = client.start(spec)
    for _ in client.watch(run_id):
        pass
    rows = [*client.rows(run_id)]
    assert Counter(row.dataset for row in rows) == dict.fromkeys(_EMBEDDED, 5)
    assert not [row for row in rows if row.HasField("failure")]
    for described in value_from_proto(client.get(run_id).config["datasets"]):
        wanted = dict.fromkeys((*_EMBEDDED[described["label"]].evaluators, "context-retention"))
        assert [evaluator["name"] for evaluator in described["evaluators"]] == [*wanted]


def test_the_package_carries_each_file_and_no_other() -> None:
    files = list(_FOLDER.glob("*.jsonl"))
    # One is written when it is read.
    stored = _EMBEDDED.keys() - {"long-memory"}
    assert {path.name for path in files} == {f"{name}.jsonl" for name in stored}
    small = [path for path in files if path.name != "long-notes.jsonl"]
    assert max(path.stat().st_size for path in small) < 60_000


@pytest.mark.parametrize("example", _examples("mini-code"), ids=lambda example: example["id"])
def test_a_canonical_solution_passes_and_a_constant_does_not(example: dict[str, Any]) -> None:
    evaluator = CodeExecution()
    assert evaluator.score(example, {"response": example["answer"]}) == {"pass_at_1": 1.0}
    name = example.get("entry_point") or example["answer"].partition("def ")[2].partition("(")[0]
    constant = f"def {name}(*given):\n    return 1\n"
    assert evaluator.score(example, {"response": constant}) == {"pass_at_1": 0.0}


def test_code_comes_in_both_layouts() -> None:
    layouts = Counter("test" if "test" in e else "test_list" for e in _examples("mini-code"))
    assert min(layouts["test"], layouts["test_list"]) >= 15


def test_a_right_final_answer_is_right_in_every_form_and_a_wrong_one_is_not() -> None:
    evaluator, examples = MathEquivalence(), _examples("mini-maths")
    for example, other in pairwise([*examples, examples[0]]):
        gold = example["answer"]
        for response in (f"So \\boxed{{{gold}}}.", f"The answer is ${gold}$.", f"Answer: {gold}"):
            assert evaluator.score(example, {"response": response}) == {"math_equiv": 1.0}
        for response in (f"\\boxed{{{other['answer']}}}", example["context"]):
            assert evaluator.score(example, {"response": response}) == {"math_equiv": 0.0}, response
    assert len({example["kind"] for example in examples}) >= 15


def test_one_letter_is_right_and_no_letter_is_a_good_guess() -> None:
    evaluator, examples = MultipleChoiceAccuracy(), _examples("mini-choice")
    for example in examples:
        offered = string.ascii_uppercase[: len(example["choices"])]
        scores = {
            letter: evaluator.score(example, {"response": f"The answer is {letter}."})
            for letter in offered
        }
        right = [letter for letter in offered if scores[letter]["mc_accuracy"]]
        assert right == [example["correct_letter"]]
        assert example["choices"][offered.index(right[0])] == example["answer"]
        assert len(set(example["choices"])) == len(offered)
    sizes = {len(example["choices"]) for example in examples}
    assert sizes >= {2, 3, 4, 5, 10}
    ((_, most),) = Counter(e["correct_letter"] for e in examples).most_common(1)
    assert most <= len(examples) / 3


def test_each_label_of_both_families_is_recognised() -> None:
    evaluator, examples = NLILabelMatch(), _examples("mini-nli")
    families = (
        {"Entailment", "Contradiction", "Not mentioned"},
        {"SUPPORTS", "REFUTES", "NOT ENOUGH INFO"},
    )
    assert {example["answer"] for example in examples} == families[0] | families[1]
    for example in examples:
        (family,) = (labels for labels in families if example["answer"] in labels)
        for label in family:
            score = evaluator.score(example, {"response": f"The label is: {label}."})
            assert score["nli_accuracy"] == float(label == example["answer"])


def test_both_summaries_are_references_and_much_shorter_than_the_text() -> None:
    evaluator = SummarizationQuality()
    for example in _examples("mini-summaries"):
        assert len(set(example["answers"])) == 2
        for summary in example["answers"]:
            assert evaluator.score(example, {"response": summary})["rouge_l_f1"] == 1.0
            assert len(summary) < 0.45 * len(example["context"])


def test_a_response_that_follows_its_instructions_passes_and_another_does_not() -> None:
    evaluator, examples = IFEvalChecker(), _examples("mini-instructions")
    responses = json.loads(_RESPONSES.read_text(encoding="utf-8"))
    assert responses.keys() == {example["id"] for example in examples}
    for example in examples:
        for kind, expected in (("followed", 1.0), ("violated", 0.0)):
            scores = evaluator.score(example, {"response": responses[example["id"]][kind]})
            assert scores["ifeval_prompt_strict"] == expected, (example["id"], kind)
    used = {name for example in examples for name in example["instruction_id_list"]}
    assert used == OFFICIAL_RULES.keys()


def test_a_chat_has_one_turn_or_two_and_asks_for_the_last() -> None:
    examples = _examples("mini-chat")
    for example in examples:
        turns = example.get("turns", [{"content": example["context"]}])
        assert example["context"] == turns[0]["content"]
        assert example.get("question", example["context"]) == turns[-1]["content"]
        assert ("turns" in example) == example.get("multi_turn", False) == (len(turns) == 2)
    counts = Counter("turns" in example for example in examples)
    assert min(counts.values()) >= 10
    assert len({example["category"] for example in examples}) >= 8


def test_a_chat_is_rated_by_a_judge_that_sees_the_last_turn(
    client: BenchClient, server: ModelServer
) -> None:
    server.say("Rating: 4")
    model = {"base_url": server.url, "model": "m"}
    spec = {
        "systems": [{"proxy": model, "name": "proxy"}],
        "datasets": [{"name": "mini-chat", "max_examples": 4}],
        "evaluators": [{"name": "llm-judge", "options": model}],
        # A judge that gives everything the same rating does not pass its controls.
        "allow_unqualified_judges": True,
    }
    run_id = client.start(spec)
    for _ in client.watch(run_id):
        pass
    rows = [*client.rows(run_id)]
    assert [row.scores["judge_score"] for row in rows] == [0.75] * 4
    asked = [json.dumps(request["messages"], ensure_ascii=False) for request in server.requests]
    for example in _examples("mini-chat")[:4]:
        last = json.dumps(example["question"], ensure_ascii=False)[1:-1]
        of_it = [each for each in asked if last in each and "Rating: 4" in each]
        judged = [each for each in of_it if "rate the RESPONSE" in each]
        assert len(judged) == 1, "what the model said, once; the controls say something else"


def test_conversations_go_forward_in_time_over_several_sessions() -> None:
    examples = _examples("mini-memory")
    assert len(examples) >= 6
    for example in examples:
        times = [datetime.fromisoformat(turn["time"]) for turn in example["turns"]]
        assert times == sorted(times)
        sessions = [turn["session"] for turn in example["turns"]]
        assert sessions == sorted(sessions)
        assert len(set(sessions)) >= 3
        assert len({turn.get("speaker", turn["role"]) for turn in example["turns"]}) == 2
        assert example["context"].count("\n") == len(times) - 1


def test_memory_questions_are_of_every_type_and_only_adversarial_ones_lack_an_answer() -> None:
    types: Counter[str] = Counter()
    for example in _examples("mini-memory"):
        said = set(answer_tokens(example["context"]))
        for pair in example["qa_pairs"]:
            types[pair["type"]] += 1
            assert pair["is_abstention"] == (pair["type"] == "adversarial")
            if pair["type"] == "single_hop":
                wanted = answer_tokens(pair["answer"])
                assert sum(token in said for token in wanted) >= len(wanted) / 2, pair
    assert types.keys() == {"single_hop", "multi_hop", "temporal", "open_domain", "adversarial"}
    assert min(types.values()) >= 5
