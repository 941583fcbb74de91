"""Letters by the rules of single benchmarks, as their own graders read them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import MultipleChoiceAccuracy
from cbench_server.evaluators.choice.extraction import EXTRACTIONS

CITIES = ["Paris", "London", "Rome, Italy", "Berlin!"]

# A response, and the letter that each grader reads: lm-eval, MMLU-Pro, LongBench v2.
_READ = [
    ("The answer is (B).", "B", "B", None),
    ("The correct answer is (B).", "B", "B", "B"),
    ("The correct answer is **(C)**", "C", "C", "C"),
    ("The correct answer is D", None, "D", "D"),
    ("The correct answer is A, not (B).", "B", "A", "A"),
    ("The correct answer is A. The correct answer is (C).", "C", "A", "C"),
    ("the correct answer is (C)", "C", "C", None),
    ("The answer is (A). No, the answer is (B).", "B", "A", None),
    ("The answer is (Z).", "Z", None, None),
    ("Answer: C", "C", "C", None),
    ("Answer: A or Answer: B\nAnswer: C", "C", "B", None),
    ("Answer: Answer: B", "B", "B", None),
    ("answer:\n\n D", "D", "D", None),
    ("I would say A, then C", None, "C", None),
    ("It is rome italy.", "C", None, None),
    ("London or Paris", "A", None, None),
    ("berlin", "D", None, None),
    ("Alternatives", None, None, None),
    ("", None, None, None),
]


@pytest.mark.parametrize(("response", "lm_eval", "mmlu_pro", "longbench_v2"), _READ)
def test_a_rule_reads_the_letter_that_its_benchmark_reads(
    response: str, lm_eval: str | None, mmlu_pro: str | None, longbench_v2: str | None
) -> None:
    rules = ("lm-eval", "mmlu-pro", "longbench-v2")
    read = {name: EXTRACTIONS[name](response, "ABCD", CITIES) for name in rules}
    assert {name: choice.letter for name, choice in read.items()} == {
        "lm-eval": lm_eval,
        "mmlu-pro": mmlu_pro,
        "longbench-v2": longbench_v2,
    }
    assert all(choice.how for choice in read.values())


def test_the_rule_is_an_option_and_the_default_stays() -> None:
    row, said = {"correct_letter": "B", "choices": CITIES}, {"response": "I choose B."}
    assert MultipleChoiceAccuracy().score(row, said) == {"mc_accuracy": 1.0}
    strict = MultipleChoiceAccuracy(extraction="longbench-v2")
    assert strict.score(row, said) == {"mc_accuracy": 0.0}
    assert strict.options == {"extraction": "longbench-v2", "strip_thinking": True}
    assert MultipleChoiceAccuracy().options == {"strip_thinking": True}
    assert MultipleChoiceAccuracy(extraction="mmlu-pro").assess(row, said).details == {
        "letter": "B",
        "how": "last letter",
    }


@pytest.mark.parametrize(
    ("response", "options", "letter"),
    [
        ("The answer is (A).", 10, "A"),
        ("Answer: B", 10, "B"),
        ("I would say C", 10, "G"),
        ("", 9, "G"),
        ("", 7, "D"),
        ("", 3, "B"),
    ],
)
def test_published_tables_guess_a_letter_by_the_number_of_options(
    response: str, options: int, letter: str
) -> None:
    row = {"correct_letter": letter, "choices": [f"option {n}" for n in range(options)]}
    rule = MultipleChoiceAccuracy(extraction="mmlu-pro-published")
    assert rule.score(row, {"response": response}) == {"mc_accuracy": 1.0}
    assert rule.assess(row, {"response": response}).details["letter"] == letter


def test_an_unknown_rule_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match='"mmlu" is not one of: lm-eval, mmlu-pro, '):
        MultipleChoiceAccuracy(extraction="mmlu")


_PIECES = st.lists(
    st.sampled_from(
        ["answer is", "Answer:", "The correct answer is", "A", "(B)", "C.", ":", "\n", "paris", "*"]
    ),
    max_size=12,
).map(" ".join)


@given(_PIECES | st.text(), st.lists(st.text(), max_size=5), st.sampled_from([*EXTRACTIONS]))
def test_any_response_is_read_to_one_capital_or_nothing(
    response: str, options: list[str], rule: str
) -> None:
    letter = EXTRACTIONS[rule](response, "ABCDE", options).letter
    assert letter is None or (len(letter) == 1 and letter.isupper())


@pytest.mark.parametrize("rule", [*EXTRACTIONS])
@pytest.mark.parametrize(
    "piece", ["answer:", "Answer:\n", ": ", "A ", " ", "The correct answer is "]
)
def test_a_million_characters_of_one_kind_are_read(rule: str, piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    guess = "D" if rule == "mmlu-pro-published" else None
    assert EXTRACTIONS[rule](text, "ABCD", CITIES).letter in (guess, "A")


@pytest.mark.parametrize("cue", ["#### ", "####", "answer: ", "The answer is "])
def test_cues_without_an_answer_are_passed_over_at_once(cue: str) -> None:
    """Each looked for the next word by itself: 0.4 s of CPU for ten thousand characters."""

    def cpu_seconds() -> float:
        started = time.thread_time()
        MultipleChoiceAccuracy().score(
            {"correct_letter": "A", "choices": CITIES}, {"response": text}
        )
        return time.thread_time() - started

    text = cue * (10_000 // len(cue))
    assert min(cpu_seconds() for _ in range(4)) < 0.15
