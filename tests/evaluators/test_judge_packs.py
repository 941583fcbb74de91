"""Judge packs: which prompt a question gets, and what becomes of the verdicts."""

import json
from typing import Any

import pytest

from cbench_server.errors import InvalidInput, UnknownName
from cbench_server.evaluators import LLMJudge, MemoryJudge
from cbench_server.evaluators.judge import official_prompts
from cbench_server.evaluators.judge.answer_packs import LONGMEMEVAL
from cbench_server.evaluators.judge.official_prompts import are_official, prompt_digest
from tests.fixtures.model_server import Handler, ModelServer

ASKED = {"question": "Where does Ann live?", "answer": "in Oslo"}


def say_by(server: ModelServer, decide: Any) -> None:
    """Answer each request by what its last message says."""

    def step(handler: Handler) -> None:
        content = decide(handler.request_body["messages"][-1]["content"])
        handler.reply(200, json.dumps({"choices": [{"message": {"content": content}}]}))

    server.steps.append(step)


def test_each_type_of_question_of_longmemeval_gets_its_own_prompt(server: ModelServer) -> None:
    server.say("YES")
    judge = MemoryJudge(server.url, pack="longmemeval")
    kinds = ["multi-session", "temporal-reasoning", "knowledge-update", "single-session-preference"]
    for kind in kinds:
        judge.score({**ASKED, "question_type": kind}, {"response": "Oslo"})
    judge.score({**ASKED, "question_type": kinds[0], "is_abstention": True}, {"response": "Oslo"})
    prompts = [request["messages"][0]["content"] for request in server.requests]
    wanted = [LONGMEMEVAL.instructions, *LONGMEMEVAL.by_type.values()]
    assert [prompt.startswith(text) for prompt, text in zip(prompts, wanted, strict=True)] == (
        [True] * 5
    )
    assert len(set(wanted)) == 5


@pytest.mark.parametrize("pack", ["memory-qa", "strict", "lenient", "locomo", "frames"])
def test_every_answer_pack_gives_one_or_zero_with_either_judge(
    server: ModelServer, pack: str
) -> None:
    server.say("TRUE" if pack == "frames" else "YES")
    server.say("FALSE" if pack == "frames" else "NO")
    llm, memory = LLMJudge(server.url, pack=pack), MemoryJudge(server.url, pack=pack)
    assert llm.score(ASKED, {"response": "Oslo"}) == {"judge_score": 1.0}
    assert memory.score(ASKED, {"response": "Rome"})["memory_judge"] == 0.0
    assert not llm.applies({"question": "Where?"})


async def test_mt_bench_grades_both_turns_with_the_conversation_and_the_reference(
    server: ModelServer,
) -> None:
    server.say("Good.\nGrade: 8")
    server.say("Rating: [[5]]")
    judge = LLMJudge(server.url, pack="mt-bench")
    original = {
        "question": "Now in French.",
        "turns": [{"role": "user", "content": "Greet me."}, {"role": "user", "content": "And?"}],
        "reference": ["", "Bonjour"],
    }
    said = await judge.assess(original, {"turn_responses": ["Hello", "Salut"], "response": "Salut"})
    await judge.close_connections()
    assert said.scores == {
        "judge_score": (6.5 - 1) / 9,
        "judge_grade": 6.5,
        "judge_grade_turn_1": 8.0,
        "judge_grade_turn_2": 5.0,
    }
    first, second = (request["messages"][0]["content"] for request in server.requests)
    assert "[BEGIN REFERENCE" not in first
    assert all(text in second for text in ("Greet me.", "Hello", "And?", "Salut", "Bonjour"))
    assert len(said.details["prompt_digests"]) == len(said.details["prompts"]) == 2


def test_a_turn_without_a_response_gets_the_lowest_grade_unasked(server: ModelServer) -> None:
    server.say("Grade: 9")
    original = {"turns": ["One?", "Two?"], "question": "Two?"}
    scores = LLMJudge(server.url, pack="mt-bench").score(original, {"response": "2"})
    assert (scores["judge_grade_turn_1"], scores["judge_grade_turn_2"]) == (1.0, 9.0)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("decide", "score", "flip"),
    [
        (lambda prompt: "A" if prompt.index("mine") < prompt.index("theirs") else "B", 1.0, 0.0),
        (lambda prompt: "B" if prompt.index("mine") < prompt.index("theirs") else "A", 0.0, 0.0),
        (lambda prompt: "A", 0.5, 1.0),
        (lambda prompt: "C", 0.5, 0.0),
    ],
    ids=["better", "worse", "position", "tie"],
)
def test_alpaca_eval_compares_in_both_orders_and_sees_a_judge_that_goes_by_position(
    server: ModelServer, decide: Any, score: float, flip: float
) -> None:
    say_by(server, decide)
    original = {"question": "Write.", "answer": "theirs"}
    scores = LLMJudge(server.url, pack="alpaca-eval").score(original, {"response": "mine"})
    assert scores == {"judge_score": score, "judge_flip": flip}


async def test_labels_tell_several_judges_of_one_run_apart(server: ModelServer) -> None:
    server.say("YES")
    judge = MemoryJudge(server.url, pack="lenient", label="lenient", self_graded=True)
    assert judge.name == "memory-judge:lenient"
    assert judge.score_infos[0].name == "memory_judge:lenient"
    said = await judge.assess(ASKED, {"response": "Oslo"})
    await judge.close_connections()
    assert said.scores == {"memory_judge:lenient": 1.0, "memory_judge_raw:lenient": 1.0}
    assert said.details["self_graded"] is True
    assert type(judge)(**judge.options).version == judge.version


def test_whole_prompts_from_a_file_are_used_as_they_are(server: ModelServer) -> None:
    server.say("yes")
    prompt = "Q: {question}\nGold: {answer}\nSaid: {response} {not a field}\nyes or no?"
    judge = MemoryJudge(server.url, pack="longmemeval", prompts={"": prompt})
    judge.score(ASKED, {"response": "Oslo {question}"})
    [message] = server.requests[0]["messages"]
    assert message["content"] == (
        "Q: Where does Ann live?\nGold: in Oslo\nSaid: Oslo {question} {not a field}\nyes or no?"
    )
    assert judge.version != MemoryJudge(server.url, pack="longmemeval").version


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pack": "longmemeval", "prompts": {"temporal-reasoning": "x"}}, "lack abstention"),
        (
            {"pack": "locomo", "prompts": {"": "{question} {response}"}},
            "where {answer} or {gold_answer} stands",
        ),
    ],
)
def test_prompts_that_lack_something_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        MemoryJudge("http://h", **options)


def test_only_all_of_a_benchmarks_own_prompts_are_official(monkeypatch: Any) -> None:
    own = {"": "Q {question} A {answer} R {response}", "abstention": "{question} ?"}
    digests = {kind: prompt_digest(text) for kind, text in own.items()}
    monkeypatch.setitem(official_prompts.DIGESTS, "mine", digests)
    assert are_official("mine", own)
    assert are_official("mine", {**own, "": "Q {question}\n  A {answer} R {response}\n"})
    assert not are_official("mine", {**own, "": "Q {question} A {answer} R {response}!"})
    assert not are_official("mine", {"": own[""]})
    assert not are_official("strict", {})
    # What LongMemEval published is not in this repository, but its number of prompts is known.
    assert set(official_prompts.DIGESTS["longmemeval"]) == {"", *LONGMEMEVAL.by_type}


def test_the_memory_judge_takes_no_pack_that_grades() -> None:
    with pytest.raises(UnknownName, match="longmemeval"):
        MemoryJudge("http://h", pack="mt-bench")


_TURNS = {
    "single-v1": (
        "<|im_start|>system\nGrade.\n<|im_end|>\n<|im_start|>user\n{question}|{answer}\n<|im_end|>"
    ),
    "single-math-v1": "{question}|{ref_answer_1}|{answer}",
    "single-v1-multi-turn": "{question_1}|{answer_1}|{question_2}|{answer_2}",
    "single-math-v1-multi-turn": (
        "{question_1}|{ref_answer_1}|{answer_1}|{question_2}|{ref_answer_2}|{answer_2}"
    ),
}
_TALK = {
    "turns": ["Add 1 and 1.", "And 1 more?"],
    "reference": ["2", "3"],
    "category": "math",
}


@pytest.mark.parametrize(
    ("category", "asked"),
    [
        ("math", ["Add 1 and 1.|2|two", "Add 1 and 1.|2|two|And 1 more?|3|<|im_end|>"]),
        ("writing", ["Add 1 and 1.|two", "Add 1 and 1.|two|And 1 more?|<|im_end|>"]),
    ],
)
async def test_mt_benchs_own_prompts_are_asked_turn_by_turn(
    server: ModelServer, category: str, asked: list[str]
) -> None:
    server.say("Between [[rating]] 1 and 10: [[8]] rather than [[3]]")
    server.say("[6]")
    judge = LLMJudge(server.url, pack="mt-bench", prompts=_TURNS)
    said = {"turn_responses": ["two", "<|im_end|>"]}
    found = await judge.assess({**_TALK, "category": category}, said)
    await judge.close_connections()
    assert found.scores["judge_grade"] == 7.0
    sent = [request["messages"] for request in server.requests]
    assert [messages[-1] for messages in sent] == [
        {"role": "user", "content": text} for text in asked
    ]
    assert [len(messages) for messages in sent] == ([1, 1] if category == "math" else [2, 1])


@pytest.mark.parametrize(
    ("decide", "score", "flip"),
    [
        (lambda prompt: "m" if prompt.endswith("1: mine 2: theirs") else "M", 1.0, 0.0),
        (lambda prompt: "m", 0.5, 1.0),
        (lambda prompt: " M\n", 0.5, 1.0),
        (lambda prompt: "Response A is better", 0.5, 1.0),
    ],
    ids=["prefers mine", "always m", "always M", "in words"],
)
def test_alpaca_evals_own_prompt_is_asked_in_both_orders(
    server: ModelServer, decide: Any, score: float, flip: float
) -> None:
    say_by(server, decide)
    prompts = {"": '{"asked": """{instruction}"""} 1: {output_1} 2: {output_2}'}
    judge = LLMJudge(server.url, pack="alpaca-eval", prompts=prompts)
    original = {"question": "Write.", "answer": "theirs"}
    scores = judge.score(original, {"response": "mine"})
    assert scores == {"judge_score": score, "judge_flip": flip}


@pytest.mark.parametrize(
    ("pack", "prompts", "said"),
    [
        ("mt-bench", {"single-v1": "{question} {answer}"}, "lack single-v1-multi-turn"),
        ("mt-bench", {**_TURNS, "single-v2": "x"}, 'no prompt "single-v2"; there are: single-v1,'),
        ("mt-bench", {**_TURNS, "single-v1": "{question}"}, "where {answer} stands"),
        ("alpaca-eval", {"": "{instruction} {output_1}"}, "where {output_2} stands"),
        ("alpaca-eval", {"other": "x"}, 'lack ""'),
    ],
)
def test_prompts_of_conversations_and_pairs_that_lack_something_are_refused(
    pack: str, prompts: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        LLMJudge("http://h", pack=pack, prompts=prompts)
