"""MultipleChoiceAccuracy: which letter a response settles on."""

import re
import string
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import MultipleChoiceAccuracy
from cbench_server.evaluators.choice.answer_letter import extract_choice, offered
from cbench_server.types import Evaluator

CITIES = ["Paris", "London", "Rome", "Berlin"]
ANIMALS = ["A dog", "A cat", "The bird", "A dog and a cat"]
NUMBERS = ["3.20", "0.32", "32", "-32"]
ROMAN = ["I only", "II only", "I and II", "neither I nor II"]
PAIRS = ["Iron", "Vitamin C", "Both A and B", "None of the above"]

_STATED = [
    ("The answer is B.", "B"),
    ("the answer is b", "B"),
    ("the answer is a.", "A"),
    ("answer is (B)", "B"),
    ("The answer is **C**", "C"),
    ("The answer is definitely B", "B"),
    ("The correct answer is definitely B", "B"),
    ("The answer is most likely (d).", "D"),
    ("The answer is therefore option (C).", "C"),
    ("The answer is (C) not guilty.", "C"),
    ("The answer is C, not B", "C"),
    ("The answer, given the facts above, is B.", "B"),
    ("The correct answer to this question is option D.", "D"),
    ("The correct letter is B", "B"),
    ('The right answer is "B"', "B"),
    ("The best answer is option (A), since it fits", "A"),
    ("The correct answer is:\n\n**B) London**", "B"),
    ("The correct option that matches these results is:\n\nThe answer is (D).", "D"),
    ("My answer would be C", "C"),
    ("I believe the answer to be C", "C"),
    ("Therefore, the correct choice would be A.", "A"),
    ("The answer should be D, I think.", "D"),
    ("Answer: B", "B"),
    ("answer: (c)", "C"),
    ("Answer: A.", "A"),
    ("Answer:\nA", "A"),
    ("**Answer:** B", "B"),
    ("**Answer: B**", "B"),
    ("**Answer**: B", "B"),
    ("## Answer\n\nB", "B"),
    ("Final Answer\n\nB", "B"),
    ("FINAL ANSWER: D", "D"),
    ("The answer: option B", "B"),
    ("Answer - C", "C"),
    ("Answer = C", "C"),
    ("Answer: $B$", "B"),
    ("Ans: C", "C"),
    ("Answer: I think B", "B"),
    ("Correct answer: D. Because A is wrong.", "D"),
    ('{"answer": "B"}', "B"),
    ("<answer>B</answer>", "B"),
    ("#### C", "C"),
    (r"\boxed{B}", "B"),
    (r"$\boxed{\text{C}}$", "C"),
    (r"\boxed{(D)}", "D"),
    (r"So $\boxed{\textbf{A. Paris}}$.", "A"),
    ("I choose D", "D"),
    ("I would go with option D because", "D"),
    ("I'd say B", "B"),
    ("My pick is C", "C"),
    ("Let's select (B).", "B"),
    ("I would opt for A.", "A"),
    ("A dog barked. The correct option is C", "C"),
    ("Option B is the best choice.", "B"),
    ("B is the correct answer.", "B"),
    ("(C) must be the right answer", "C"),
    ("A is the wrong answer, so C is the correct option.", "C"),
    ("The answer is not A but B", "B"),
    ("The answer is not A. It is C.", "C"),
    ("The answer cannot be A; we pick D", "D"),
    ("If the answer is A, then x is 2. The answer is B", "B"),
    ("Is the answer A? No: the answer is C.", "C"),
    ("The answer is A. Wait, actually the answer is C.", "C"),
    ("At first the answer is B. Checking again, B is wrong. The answer is (D).", "D"),
    ("The answer is (B).\n\nQuestion: And now?\nAnswer: The answer is (C).", "B"),
    ("Vitamin C is essential. Hence the answer is A.", "A"),
    ("答案是B", "B"),
    ("答案：B", "B"),
    ("正确答案为（C）。", "C"),
    ("因此，正确选项是 D。", "D"),
    ("故选D。", "D"),
    ("选择 B 项", "B"),
    ("正解はCです", "C"),
    ("정답은 C입니다", "C"),
    ("La respuesta correcta es B.", "B"),
    ("Die richtige Antwort ist C.", "C"),
    ("La bonne réponse est la lettre D.", "D"),
    ("Risposta: A", "A"),
    ("Ответ: B", "B"),
    ("उत्तर: C", "C"),
]

_SHOWN = [
    ("A", "A"),
    ("a", "A"),
    ("c", "C"),
    (" D \n", "D"),
    ("B.", "B"),
    ("(d)", "D"),
    ("[B]", "B"),
    ("**B**", "B"),
    ("**B.**", "B"),
    ("`C`", "C"),
    ("B) foo", "B"),
    ("B: London", "B"),
    ("**B) London**", "B"),
    ("B. Paris is the capital of France", "B"),
    ("A.\nBecause mitochondria make energy.", "A"),
    ("(C) because the others fail", "C"),
    ("Reasoning first.\n\nC", "C"),
    ("The capital is **B) London**.", "B"),
    ("A is wrong, B is correct", "B"),
    ("Option A seems incorrect. Option D seems right.", "D"),
    ("A. Paris\nB. London\nC. Rome\nD. Berlin\n\nSo it's B", "B"),
    ("A. Paris\nB. London\nC. Rome\nD. Berlin\n\nThe answer is C.", "C"),
    (
        "A. guilty - This is incorrect.\nC. not guilty - This is the correct answer because"
        " he slept.\nD. liable - This is incorrect.",
        "C",
    ),
    ("I think a dog is best, so C", "C"),
    ("It must be A", "A"),
    ("Therefore, (B).", "B"),
    ("Not (A) but (B)", "B"),
    ("not A but B", "B"),
    ("Both A and B are wrong, leaving C", "C"),
    ("We can eliminate A and C, so D", "D"),
    ("Option A is incorrect. Option C.", "C"),
    ("Choice (C)", "C"),
    ("I am not sure. Perhaps C.", "C"),
]

# With ten options, of which I is one.
_OF_TEN = [
    ("A: (B)", "B"),
    ("A: B", "B"),
    ("A: Paris is", "A"),
    ("Answer: **B. Paris**", "B"),
    ("The answer is: **(B) foo**", "B"),
    ("Answer: (B) A dog", "B"),
    ("Correct answer is **(E)** 5 m/s.", "E"),
    ("**Final Answer:** **(C)**", "C"),
    ("Answer: $\\text{D}$", "D"),
    ("\\boxed{\\mathrm{C}}", "C"),
    ("\\boxed{C) 5}", "C"),
    ("The correct answer is\n\n$\\boxed{A}$", "A"),
    ("ANSWER IS C", "C"),
    ("The answer is option C: foo", "C"),
    ("The correct answer would thus be (C)", "C"),
    ("Thus, the final answer is C: 12", "C"),
    ("(A) is the correct answer", "A"),
    ("The correct answer is [D].", "D"),
    ("The answer is <B>.", "B"),
    ("The answer is *B*.", "B"),
    ("the answer is 'B'", "B"),
    ("Option (B) is correct.", "B"),
    ("Correct option: B", "B"),
    ("Correct: B", "B"),
    ("Selected: C", "C"),
    ("Choice: D", "D"),
    ("Prediction: B", "B"),
    ("The answer is \\( B \\).", "B"),
    ("The answer is \\(\\boxed{H}\\).", "H"),
    ("The answer is $\\mathbf{(G)}$", "G"),
    ("Answer: **D** - because A is wrong", "D"),
    ("The correct answer is **A) True**.", "A"),
    ("the correct choice is **D.**", "D"),
    ("Therefore, the answer is: J. 9% of", "J"),
    ("The answer is (A) 25 × 8.", "A"),
    ("So, the answer is E: The", "E"),
    ("The answer is (I) A landlord", "I"),
    ("The answer is F. The answer is F.", "F"),
    ("Among the options given, the closest one is (D).", "D"),
    ("The closest value is option H.", "H"),
    ("the correct match is C", "C"),
    ("This corresponds to option (B).", "B"),
    ("None of the options match, but the closest is (G) 12.", "G"),
    ("Hence, (J) is correct", "J"),
    ("The answer is (A)(B)", "A"),
    ("The best answer is A", "A"),
    ("Answer: A) 5 and B) 6 are..", "A"),
    ("Answer: the letter B", "B"),
    ("The answer\n(C)", "C"),
    ("B\n\nExplanation: The answer is not A since", "B"),
    ("The statement that is true is B.", "B"),
    ("Let's go through A, B, C, D. The right one: C", "C"),
    ("My final answer: C", "C"),
    ("Final answer: C. Let me double check: option A would be...", "C"),
    ("I'm going with B", "B"),
    ("The correct answer isn't A; it's D", "D"),
    ("E", "E"),
    ("The solution is given by (D)", "D"),
    ("My choice: option B.", "B"),
    ("Answer B", "B"),
    ("I", "I"),
    ("Sure! The answer is C) Rome", "C"),
    ("The answer should be (B) rather than (C).", "B"),
    ("A is correct. B is incorrect. C is incorrect.", "A"),
    ("Statement A is true, statement B is false. The answer is (D)", "D"),
    ("I select option C", "C"),
    ("The answer is B and not A", "B"),
    ("It is C", "C"),
    ("It's a C", "C"),
]

_NOTHING = [
    "",
    "   ",
    "none of these",
    "I don't know",
    "I am sure that a cat is an animal",
    "The answer is a dog",
    "I choose K",
    "The answer is E",
    "The answer is A or B.",
    "The answer is either A, B or C.",
    "A) x\nB) y\nC) z\nD) w",
    "Neither A nor B",
    "Because.",
    "The answer is Discrimination",
]


@pytest.mark.parametrize(("response", "letter"), _STATED)
def test_an_explicit_statement_is_read(response: str, letter: str) -> None:
    choice = extract_choice(response, "ABCD")
    assert choice.letter == letter, choice.how


@pytest.mark.parametrize(("response", "letter"), _OF_TEN)
def test_a_letter_out_of_ten_is_read(response: str, letter: str) -> None:
    choice = extract_choice(response, "ABCDEFGHIJ")
    assert choice.letter == letter, choice.how


@pytest.mark.parametrize(("response", "letter"), _SHOWN)
def test_a_letter_that_is_only_shown_is_read(response: str, letter: str) -> None:
    choice = extract_choice(response, "ABCD")
    assert choice.letter == letter, choice.how


@pytest.mark.parametrize("response", _NOTHING)
def test_where_nothing_is_chosen_nothing_is_read(response: str) -> None:
    choice = extract_choice(response, "ABCD")
    assert choice.letter is None, choice.how
    assert choice.how


@pytest.mark.parametrize(
    ("response", "options", "letter"),
    [
        ("Paris", CITIES, "A"),
        ("The capital is Paris.", CITIES, "A"),
        ("It's london, England", CITIES, "B"),
        ("The answer is Rome.", CITIES, "C"),
        ("The answer is Rome (C).", CITIES, "C"),
        ("Paris or London", CITIES, None),
        ("Parisian", CITIES, None),
        ("Paris is tempting, but the answer is Rome.", CITIES, "C"),
        ("The answer is A dog.", ANIMALS, "A"),
        ("The answer is A cat", ANIMALS, "B"),
        ("a dog and a cat", ANIMALS, "D"),
        ("bird", ANIMALS, "C"),
        ("The answer is A.", ANIMALS, "A"),
        ("A dog is best, so C", ANIMALS, "C"),
        ("0.32", NUMBERS, "B"),
        ("It is 32.", NUMBERS, "C"),
        ("It is -32.", NUMBERS, "D"),
        (r"\boxed{3.20}", NUMBERS, "A"),
        ("I and II", ROMAN, "C"),
        ("The answer is I only.", ROMAN, "A"),
        ("Vitamin C", PAIRS, "B"),
        ("The patient lacks vitamin C.", PAIRS, "B"),
        ("The answer is both A and B.", PAIRS, "C"),
        ("none of the above", PAIRS, "D"),
    ],
)
def test_the_text_of_one_option_counts_as_its_letter(
    response: str, options: list[str], letter: str | None
) -> None:
    choice = extract_choice(response, "ABCD", options)
    assert choice.letter == letter, choice.how


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("The answer is I.", "I"),
        ("The answer is (I).", "I"),
        ("Answer: I", "I"),
        ("I", "I"),
        ("I think it is J", "J"),
        ("The answer is I think H", "H"),
        ("I am sure", None),
        ("I believe so. I do.", None),
    ],
)
def test_the_word_i_is_no_answer_but_the_letter_is(response: str, letter: str | None) -> None:
    assert extract_choice(response, "ABCDEFGHIJ").letter == letter


@pytest.mark.parametrize(
    ("choices", "texts"),
    [
        (["x", 2], ["x", "2"]),
        (("x",), ["x"]),
        ({"text": ["x", "y"], "label": ["1", "2"]}, ["x", "y"]),
        ({"B": "y", "A": "x"}, ["x", "y"]),
        ("x, y", []),
        (None, []),
        ({"first": "x"}, []),
    ],
)
def test_choices_come_in_several_forms(choices: object, texts: list[str]) -> None:
    assert offered(choices) == texts


@pytest.mark.parametrize(
    ("original", "processed", "scores"),
    [
        ({"correct_letter": "B"}, {"response": "The answer is B."}, {"mc_accuracy": 1.0}),
        ({"correct_letter": " b "}, {"response": "B"}, {"mc_accuracy": 1.0}),
        ({"correct_letter": "(B)"}, {"response": "B"}, {"mc_accuracy": 1.0}),
        ({"correct_letter": "B"}, {"response": "C"}, {"mc_accuracy": 0.0}),
        ({"correct_letter": "B"}, {"response": ""}, {"mc_accuracy": 0.0}),
        ({"correct_letter": "B"}, {"response": None}, {"mc_accuracy": 0.0}),
        ({"correct_letter": "B"}, {}, {"mc_accuracy": 0.0}),
        ({"correct_letter": ""}, {"response": ""}, {"mc_accuracy": 0.0}),
        ({"correct_letter": ""}, {"response": "B"}, {"mc_accuracy": 0.0}),
        ({"correct_letter": None}, {"response": "B"}, {}),
        ({"answer": "Paris"}, {"response": "B"}, {}),
        ({"correct_letter": "E", "choices": CITIES}, {"response": "E"}, {"mc_accuracy": 0.0}),
        ({"correct_letter": "B", "choices": CITIES}, {"response": "London"}, {"mc_accuracy": 1.0}),
    ],
)
def test_the_letter_is_compared_with_the_correct_one(
    original: dict[str, Any], processed: dict[str, Any], scores: dict[str, float]
) -> None:
    assert MultipleChoiceAccuracy().score(original, processed) == scores


def test_details_say_which_letter_was_read_and_how() -> None:
    evaluator = MultipleChoiceAccuracy()
    read = evaluator.assess({"correct_letter": "B"}, {"response": "The answer is C"})
    assert read.details == {"letter": "C", "how": "statement"}
    unread = evaluator.assess({"correct_letter": "B"}, {"response": "no idea"})
    assert unread.details == {"letter": None, "how": "no letter and no option's text"}


def test_thinking_does_not_count_unless_asked_to() -> None:
    original, processed = {"correct_letter": "B"}, {"response": "<think>The answer is B</think>C"}
    assert MultipleChoiceAccuracy().score(original, processed) == {"mc_accuracy": 0.0}
    kept = MultipleChoiceAccuracy(strip_thinking=False)
    assert kept.score(original, processed) == {"mc_accuracy": 1.0}


# How the graders of MMLU-Pro and simple-evals find the answer that they asked for.
_OFFICIAL = (
    re.compile(r"answer is \(?([A-J])\)?"),
    re.compile(r"(?i)Answer[ \t]*:[ \t]*\$?([A-J])"),
)
_REASONING = [
    "Let P(A) = 0.3 and P(B) = 0.2. If A and B are independent, P(A and B) = 0.06.",
    "Option A is tempting, because a planet spins. I would not choose B.",
    "A. x\nB. y\nC. z\nD. w\n\nA is incorrect. B is correct in part.",
    "The hepatitis B virus differs from type C. I think vitamin D matters.",
    "",
]


@pytest.mark.parametrize("reasoning", _REASONING)
@pytest.mark.parametrize("ending", ["The answer is ({}).", "The answer is {}.", "Answer: {}"])
@pytest.mark.parametrize("letter", "ABCDEFGHIJ")
def test_the_form_benchmarks_ask_for_is_read_as_they_read_it(
    reasoning: str, ending: str, letter: str
) -> None:
    response = f"{reasoning}\n\n{ending.format(letter)}"
    official = next(match[1] for regex in _OFFICIAL if (match := regex.search(response)))
    assert extract_choice(response, "ABCDEFGHIJ").letter == official == letter


_ANY = st.none() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=30)
_KEYS = st.sampled_from(["correct_letter", "choices", "response", "answer"])
_PIECES = st.lists(
    st.sampled_from(
        ["The answer is", "A", "(B)", "not", "or", "**C**", "option", "\n", ":", "I", "Paris", "is"]
        + ["correct", "wrong", "\\boxed{", "}", "答案", "<answer>", "a", "D.", "choose", "?", "so"]
    ),
    max_size=15,
).map(" ".join)


@given(st.dictionaries(_KEYS, _ANY), st.dictionaries(_KEYS, _ANY | _PIECES))
def test_any_pair_is_scored_in_range_and_alike_in_any_thread(
    original: dict[str, Any], processed: dict[str, Any]
) -> None:
    evaluator = MultipleChoiceAccuracy()
    scores = evaluator.score(original, processed)
    assert scores in ({}, {"mc_accuracy": 0.0}, {"mc_accuracy": 1.0})
    assert bool(scores) == (original.get("correct_letter") is not None)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(evaluator.score, original, processed).result() == scores


@given(_PIECES, st.integers(1, 26))
def test_only_offered_letters_are_read(response: str, count: int) -> None:
    letters = string.ascii_uppercase[:count]
    choice = extract_choice(response, letters)
    assert choice.letter is None or choice.letter in letters


@given(_PIECES, st.sampled_from("ABCD"))
def test_a_final_statement_settles_it_whatever_came_before(reasoning: str, letter: str) -> None:
    response = f"{reasoning}.\n\nThe answer is ({letter})."
    assert extract_choice(response, "ABCD").letter == letter


@pytest.mark.parametrize(
    "piece",
    ["answer is ", "A ", "option A is not ", "not A, B or ", "\n", "(", "*", "answer:", "-"],
)
def test_a_long_text_of_one_kind_is_read(piece: str) -> None:
    choice = extract_choice(piece * (1_000_000 // len(piece)), "ABCD", CITIES)
    assert choice.letter in (None, "A", "B")


def test_a_very_long_response_is_read_at_its_ends() -> None:
    filler = "We consider the facts again. " * 20_000
    assert extract_choice(f"{filler}The answer is C.", "ABCD").letter == "C"
    assert extract_choice(f"B. London\n{filler}", "ABCD").letter == "B"


def test_it_is_an_evaluator_that_describes_its_scores() -> None:
    evaluator = MultipleChoiceAccuracy()
    assert isinstance(evaluator, Evaluator)
    announced = [info.name for info in evaluator.score_infos]
    assert announced == [*evaluator.score({"correct_letter": "A"}, {"response": "A"})]
