"""IFEvalChecker: the table of 19 instructions, the 25 of the paper, and all 541 prompts."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.errors import EvaluatorBroken
from cbench_server.evaluators import EVALUATORS, IFEvalChecker
from cbench_server.evaluators.ifeval.checker import loose_readings
from cbench_server.evaluators.ifeval.language import detect_language
from cbench_server.evaluators.ifeval.official_rules import OFFICIAL_RULES
from cbench_server.evaluators.ifeval.sentences import (
    count_capital_words,
    count_sentences,
    count_words,
    read_punkt,
)
from cbench_server.evaluators.ifeval.table_rules import TABLE_RULES
from cbench_server.metrics import IFEvalAccuracy
from cbench_server.metrics.stats.estimate import base_key
from cbench_server.results import EvalRow, Failure
from cbench_server.types import Evaluator

_PROMPTS = Path(__file__).parents[3] / "shared/data/hub/google/IFEval/default/train.jsonl"


def scores(instruction: str, response: object, **asked: Any) -> dict[str, float]:
    original = {"instruction_id_list": [instruction], "kwargs": [asked]}
    return IFEvalChecker().score(original, {"response": response})


def test_the_example_of_the_documentation_holds() -> None:
    original = {
        "instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
        "kwargs": [{}, {"keywords": ["hello"]}],
    }
    result = IFEvalChecker().score(original, {"response": "hello world"})
    assert result["ifeval_strict"] == result["ifeval_loose"] == 1.0


@pytest.mark.parametrize(
    ("instruction", "asked", "passing", "failing"),
    [
        ("keywords:existence", {"keywords": ["Cat", "dog"]}, "concatenate DOG", "a dog"),
        ("keywords:existence", {}, "", None),
        ("keywords:existence", {"keywords": None}, "x", None),
        ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "a dog", "a cat."),
        ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "concatenate", "(CAT)"),
        ("keywords:forbidden_words", {"forbidden_words": ["C++", ""]}, "a plus", "use C++, then"),
        ("keywords:frequency", {"keyword": "aa", "frequency": 2}, "AAaa", "aaa"),
        (
            "keywords:frequency",
            {"keyword": "a", "frequency": 2, "relation": "less than"},
            "a b",
            "a a",
        ),
        (
            "keywords:frequency",
            {"keyword": "a", "frequency": 2, "relation": "at most"},
            "a a",
            "aaa",
        ),
        ("keywords:frequency", {"keyword": "a", "frequency": 2, "relation": "exactly"}, "aa", "a"),
        ("keywords:frequency", {"keyword": "a", "frequency": 2, "relation": "around"}, "aaa", "a"),
        (
            "keywords:letter_frequency",
            {"letter": "Q", "let_frequency": 2, "let_relation": "at least"},
            "qQ",
            "q",
        ),
        (
            "keywords:letter_frequency",
            {"letter": "#", "let_frequency": 2, "let_relation": "less than"},
            "#",
            "##",
        ),
        (
            "length_constraints:number_words",
            {"num_words": 2, "relation": "exactly"},
            "it's here",
            "it",
        ),
        (
            "length_constraints:number_sentences",
            {"num_sentences": 2, "relation": "exactly"},
            "Dr. No?!",
            "One.",
        ),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n\nb\n\nc", "a\nb"),
        ("detectable_format:json_format", {}, " [1] ", "```json\n[1]\n```"),
        (
            "detectable_format:number_bullet_points",
            {"num_bullets": 2},
            "* a\n - b\n• c",
            "*a\n- b",
        ),
        ("detectable_format:title", {}, "<<a\nb>>", "<<>> <<a> >"),
        (
            "detectable_format:constrained_response",
            {"constrained_response": ["Yes", "No"]},
            " Yes\n",
            "Yes.",
        ),
        ("detectable_format:constrained_response", {"constrained_response": []}, None, "Yes"),
        (
            "detectable_format:constrained_response",
            {"constrained_response": None},
            "Well: My answer is no.",
            "No",
        ),
        ("detectable_format:constrained_response", {}, "My answer is maybe.", "maybe"),
        ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b c]", "[] [a]"),
        ("detectable_content:postscript", {}, "bye. p.s. more", "PS more"),
        ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "p.p.s x", "P.S. x"),
        ("punctuation:no_comma", {}, "a; b，c", "a, b"),
        ("change_case:english_capital", {}, "Hello World 5th (and)", "Hello world"),
        ("change_case:english_lowercase", {}, "hello 42", "Hello"),
        ("startend:end_checker", {"end_phrase": "The end."}, "It is. The end. \n", "the end."),
        (
            "combination:repeat_prompt",
            {"prompt_to_repeat": "Say hi."},
            "You said: Say hi.",
            "say hi.",
        ),
        ("combination:two_responses", {}, "one ****** two", "one two"),
        ("combination:two_responses", {}, "same ****** same", "******"),
        ("combination:two_responses", {}, "a******b******c", "one ******\n"),
    ],
)
def test_the_table_holds_to_the_letter(
    instruction: str, asked: dict[str, Any], passing: str | None, failing: str | None
) -> None:
    assert instruction in TABLE_RULES
    for response, expected in ((passing, 1.0), (failing, 0.0)):
        if response is not None:
            result = scores(instruction, response, **asked)
            assert (result["ifeval_strict"], result["ifeval_loose"]) == (expected, expected)


_CAPITALS = "THIS IS A SENTENCE THAT IS WRITTEN IN THE ENGLISH LANGUAGE"


@pytest.mark.parametrize(
    ("instruction", "asked", "followed", "not_followed"),
    [
        ("keywords:existence", {"keywords": ["Cat"]}, "conCATenate", "dog"),
        ("keywords:frequency", {"keyword": " a.c ", "frequency": 2}, "abc AXC", "abc a\nc"),
        ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "concatenate", "a CAT!"),
        (
            "keywords:letter_frequency",
            {"letter": "!", "let_frequency": 2, "let_relation": "at least"},
            "!!",
            "!",
        ),
        (
            "language:response_language",
            {"language": "de"},
            "Das ist ein deutscher Satz, und noch einer.",
            "This is an English sentence, and one more.",
        ),
        ("language:response_language", {"language": "de"}, "12345", None),
        (
            "length_constraints:number_sentences",
            {"num_sentences": 2, "relation": "less than"},
            "Dr. Smith went to Washington D.C. at 5 p.m. on Monday.",
            "He came. He saw.",
        ),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\na\n***\nb", "a\n\nb"),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a***b", "a\n***\n***\nb"),
        (
            "length_constraints:number_words",
            {"num_words": 3, "relation": "at least"},
            "it's I",
            "I",
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Weekend"},
            "Hi.\n\n'\"WEEKEND's over",
            "Weekend.\n\nHi",
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "hi"},
            "Hi, you",
            "\n\nHi, you\n\nX",
        ),
        ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[] [a]", "[a\n]"),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "x p. s. y", "x P.S y"),
        ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "p.p. s", "P.S."),
        ("detectable_content:postscript", {"postscript_marker": "Note"}, "a NOTE", "a"),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, " * a\n-b", "* a\n* b\n* c"),
        ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "*\n* a", "** a"),
        ("detectable_format:constrained_response", {}, "So: My answer is yes.", "yes"),
        (
            "detectable_format:number_highlighted_sections",
            {"num_highlights": 2},
            "*a* **b**",
            "**a**",
        ),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 1}, "*a b*", "*a\n*"),
        (
            "detectable_format:multiple_sections",
            {"section_spliter": "SECTION ", "num_sections": 2},
            "SECTION 1\na\nSECTION2 b",
            "SECTION 1 Section 2",
        ),
        ("detectable_format:json_format", {}, '```JSON\n{"a": 1}\n```', "Here: {}"),
        ("detectable_format:title", {}, "<<<a>>", "<<a\nb>> << >>"),
        ("combination:two_responses", {}, "******a******b******", "a******a"),
        ("combination:two_responses", {}, "a******b", "a******b******c"),
        ("combination:two_responses", {}, "a*******b", "a******\n******b"),
        ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi. "}, " SAY HI. hi", "> Say hi."),
        ("startend:end_checker", {"end_phrase": "The end. "}, '"It is. THE END."', "The end. Bye"),
        ("startend:quotation", {}, ' "a" ', '"'),
        (
            "change_case:capital_word_frequency",
            {"capital_frequency": 3, "capital_relation": "at least"},
            "A WELL-KNOWN word FROM me",
            "ONE Two 3 four",
        ),
        ("change_case:english_capital", {}, _CAPITALS, _CAPITALS.title()),
        ("change_case:english_lowercase", {}, _CAPITALS.lower(), _CAPITALS.capitalize()),
        ("change_case:english_lowercase", {}, None, "das ist ein deutscher satz und noch einer"),
        ("punctuation:no_comma", {}, "a; b", "a, b"),
    ],
)
def test_the_paper_s_rules_hold(
    instruction: str, asked: dict[str, Any], followed: str | None, not_followed: str | None
) -> None:
    assert instruction in OFFICIAL_RULES
    for response, expected in ((followed, 1.0), (not_followed, 0.0)):
        if response is not None:
            result = scores(instruction, response, **asked)
            assert result["ifeval_prompt_strict"] == result["ifeval_inst_strict"] == expected


def test_every_instruction_has_its_tests() -> None:
    assert (len(TABLE_RULES), len(OFFICIAL_RULES)) == (19, 25)
    official = _instructions_of(test_the_paper_s_rules_hold)
    table = _instructions_of(test_the_table_holds_to_the_letter)
    assert (table, official) == (set(TABLE_RULES), set(OFFICIAL_RULES))


def _instructions_of(test: Callable[..., None]) -> set[str]:
    [mark] = test.pytestmark  # type: ignore[attr-defined] # pytest puts it there
    return {case[0] for case in mark.args[1]}


@pytest.mark.parametrize(
    "instruction", sorted(OFFICIAL_RULES.keys() - TABLE_RULES.keys()), ids=lambda one: one
)
def test_what_the_table_lacks_is_checked_by_the_paper_s_rule(instruction: str) -> None:
    asked = {
        "language": "de",
        "num_paragraphs": 1,
        "nth_paragraph": 1,
        "first_word": "x",
        "num_bullets": 1,
        "num_highlights": 1,
        "section_spliter": "Section",
        "num_sections": 1,
        "capital_frequency": 1,
    }
    result = scores(instruction, "this is a plain english sentence about nothing", **asked)
    assert set(result.values()) == {0.0}


@pytest.mark.parametrize("response", ["", " \n ", None])
def test_an_empty_response_follows_nothing_by_the_paper(response: object) -> None:
    result = scores("punctuation:no_comma", response)
    assert (result["ifeval_strict"], result["ifeval_inst_loose"]) == (1.0, 0.0)


def test_the_loose_readings_leave_out_lines_and_asterisks() -> None:
    assert loose_readings("a*\nb\nc") == ["b\nc", "a*\nb", "b", "a\nb\nc", "a\nb"]
    sure = "Sure, here it is:\nno commas here\n*Bye, then*"
    result = scores("punctuation:no_comma", sure)
    assert (result["ifeval_prompt_strict"], result["ifeval_prompt_loose"]) == (0.0, 1.0)
    assert result["ifeval_loose"] == 0.0


def test_the_six_scores_count_instructions_apart() -> None:
    original = {
        "instruction_id_list": [
            "punctuation:no_comma",
            "startend:quotation",
            "keywords:existence",
            "no:such",
        ],
        "kwargs": [{}, {}, {"keywords": ["x"]}, {}],
    }
    assessment = IFEvalChecker().assess(original, {"response": 'Here:\n"so x"'})
    assert assessment.scores == {
        "ifeval_strict": 0.0,
        "ifeval_loose": 0.75,
        "ifeval_prompt_strict": 0.0,
        "ifeval_prompt_loose": 1.0,
        "ifeval_inst_strict": 0.75,
        "ifeval_inst_loose": 1.0,
    }
    assert assessment.details == {
        "instructions": 4,
        "followed_strict": 3,
        "followed_loose": 4,
        "failed": ["startend:quotation"],
        "not_followed": ["startend:quotation"],
        "unknown": ["no:such"],
    }


def test_no_instructions_are_all_followed() -> None:
    result = IFEvalChecker().score({"instruction_id_list": [], "kwargs": []}, {"response": "x"})
    assert set(result.values()) == {1.0}


@pytest.mark.parametrize("original", [{}, {"instruction_id_list": None}, {"kwargs": [{}]}])
def test_an_example_without_instructions_gives_no_scores(original: dict[str, Any]) -> None:
    assert IFEvalChecker().score(original, {"response": "x"}) == {}


@pytest.mark.parametrize("kwargs", [None, [], [None], "text", [[1]]])
def test_parameters_that_are_not_there_ask_for_nothing(kwargs: object) -> None:
    original = {"instruction_id_list": ["keywords:existence"], "kwargs": kwargs}
    assert set(IFEvalChecker().score(original, {"response": "x"}).values()) == {1.0}


@pytest.mark.parametrize(
    ("instruction", "asked"),
    [
        ("keywords:frequency", {"keyword": 3, "frequency": 1}),
        ("length_constraints:number_words", {"num_words": "many"}),
        ("detectable_format:json_format", {}),
    ],
)
def test_what_cannot_be_checked_fails(instruction: str, asked: dict[str, Any]) -> None:
    result = scores(instruction, "[" * 100_000, **asked)
    assert set(result.values()) == {0.0}


def test_a_keyword_is_a_regular_expression_by_the_paper_only() -> None:
    result = scores("keywords:existence", "a (b", keywords=["("])
    assert (result["ifeval_strict"], result["ifeval_prompt_strict"]) == (1.0, 0.0)


def test_thinking_is_left_out_unless_asked_for() -> None:
    original = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    processed = {"response": "<think>Well, now</think>Fine."}
    assert IFEvalChecker().score(original, processed)["ifeval_strict"] == 1.0
    kept = IFEvalChecker(strip_thinking=False).score(original, processed)
    assert kept["ifeval_strict"] == kept["ifeval_inst_strict"] == 0.0


@pytest.mark.parametrize(
    ("text", "sentences", "words", "capitals"),
    [
        ("", 0, 0, 0),
        ("Mr. Smith paid $3.50. He left!", 2, 7, 0),
        ('"Is it?" she asked. (No.)', 3, 5, 0),
        ("The U.S. NAVY isn't A-1 (OK)", 1, 9, 4),
        ("one two three", 1, 3, 0),
    ],
)
def test_text_is_split_as_nltk_splits_it(
    text: str, sentences: int, words: int, capitals: int
) -> None:
    assert count_sentences(text, enough=99) == sentences
    assert count_words(text) == words
    assert count_capital_words(text) == capitals


def test_sentence_parameters_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "punkt.zip"
    other.write_bytes(b"other")
    with pytest.raises(EvaluatorBroken, match="sha256"):
        read_punkt(other)
    with pytest.raises(EvaluatorBroken, match="Reinstall"):
        read_punkt(tmp_path / "none.zip")


# Close to the line between two languages, so that an unseeded detector wavers.
_WAVERING = ["Hotel Info Taxi", "nu va", "son las", "test data 12", "alles in a de la"]


def test_a_language_is_the_same_in_any_thread_and_process() -> None:
    here = [detect_language(text) for text in _WAVERING]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(detect_language, _WAVERING * 8)) == here * 8
    program = (
        "import json, sys; from cbench_server.evaluators.ifeval.language import detect_language;"
        "print(json.dumps([detect_language(text) for text in json.load(sys.stdin)]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(_WAVERING),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(there.stdout) == here


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
_NAMES = sorted({name for rule in OFFICIAL_RULES.values() for name in rule.needs} | {"relation"})
_ASKED = st.dictionaries(st.sampled_from(_NAMES), _ANYTHING, max_size=6)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(TABLE_RULES.keys() | OFFICIAL_RULES.keys())) | st.text(), _ASKED
        ),
        max_size=4,
    ),
    st.text(alphabet="aB.,*-[]<>\n\" '#1é", max_size=60) | _ANYTHING,
)
def test_scores_stay_in_range_and_do_not_depend_on_order(
    asked: list[tuple[str, dict[str, Any]]], response: object
) -> None:
    evaluator = IFEvalChecker()

    def score(pairs: list[tuple[str, dict[str, Any]]]) -> dict[str, float]:
        ids, kwargs = [one for one, _ in pairs], [given for _, given in pairs]
        original = {"instruction_id_list": ids, "kwargs": kwargs}
        return evaluator.score(original, {"response": response})

    result = score(asked)
    assert all(0.0 <= value <= 1.0 for value in result.values())
    assert result["ifeval_inst_strict"] <= result["ifeval_inst_loose"]
    assert result["ifeval_prompt_strict"] <= result["ifeval_inst_strict"]
    assert score(asked[::-1]) == result


@given(_ANYTHING, _ANYTHING, _ANYTHING)
def test_nothing_makes_it_raise(instructions: object, kwargs: object, response: object) -> None:
    original = {"instruction_id_list": instructions, "kwargs": kwargs}
    result = IFEvalChecker().score(original, {"response": response})
    assert bool(result) == isinstance(instructions, list)


@pytest.mark.parametrize("text", [" ", "\n", "[", "<", "*", "* ", "-\n", '"', "P.", "<<a>"])
def test_long_monotonous_responses_are_checked(text: str) -> None:
    quick = sorted(OFFICIAL_RULES.keys() - {"change_case:capital_word_frequency"})
    asked = {name: 1 for name in _NAMES if name.startswith("num_") or name.endswith("frequency")}
    asked |= {"section_spliter": "S", "postscript_marker": "P.S.", "nth_paragraph": 1}
    original = {"instruction_id_list": quick, "kwargs": [asked] * len(quick)}
    result = IFEvalChecker().score(original, {"response": text * 50_000})
    assert 0.0 <= result["ifeval_loose"] < 1.0


_RESPONSES: dict[str, Callable[[dict[str, Any]], str]] = {
    "empty": lambda row: "",
    "prompt": lambda row: str(row["prompt"]),
    "capitals": lambda row: _CAPITALS,
    "list": lambda row: "<<Title>>\n\n* one\n* two, *three*\n\nP.S. [name]\n******\n\nSECTION 1",
}


@pytest.mark.parametrize("kind", _RESPONSES)
def test_all_541_prompts_are_scored(kind: str) -> None:
    if not _PROMPTS.is_file():
        pytest.skip("needs ../shared/data, which is not part of the repository")
    rows = [json.loads(line) for line in _PROMPTS.read_text("utf-8").splitlines()]
    assert len(rows) == 541
    evaluator = IFEvalChecker()
    known = TABLE_RULES.keys() | OFFICIAL_RULES.keys()
    for row in rows:
        assert known >= set(row["instruction_id_list"])
        assessment = evaluator.assess(row, {"response": _RESPONSES[kind](row)})
        assert len(assessment.scores) == 6
        assert all(0.0 <= value <= 1.0 for value in assessment.scores.values())
        if kind == "empty":
            assert assessment.scores["ifeval_inst_loose"] == 0.0


def test_the_paper_s_accuracy_counts_every_instruction_once() -> None:
    def row(number: int, **values: Any) -> EvalRow:
        return EvalRow("a", number, {}, 0, 0, **values)

    def counts(instructions: int, strict: int, loose: int) -> dict[str, dict[str, Any]]:
        names = ("instructions", "followed_strict", "followed_loose")
        return {"ifeval": dict(zip(names, (instructions, strict, loose), strict=True))}

    rows = [
        row(0, details=counts(3, 1, 2)),
        row(1, details=counts(1, 1, 1)),
        row(2, details={"other": {}}),
        row(3, failure=Failure("system", "REASON", "message")),
    ]
    values = IFEvalAccuracy().compute(rows)
    assert {key: value for key, value in values.items() if base_key(key) == key} == {
        "ifeval_accuracy_strict": 0.5,
        "ifeval_accuracy_loose": 0.75,
        "num_instructions": 4.0,
    }
    assert IFEvalAccuracy().compute([])["ifeval_accuracy_strict"] is None


def test_it_is_an_evaluator_that_describes_its_scores() -> None:
    evaluator = IFEvalChecker()
    assert EVALUATORS["ifeval"] is IFEvalChecker
    assert isinstance(evaluator, Evaluator)
    announced = [info.name for info in evaluator.score_infos]
    assert announced == [*scores("punctuation:no_comma", "x")]
