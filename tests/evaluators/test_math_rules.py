"""Rules of single benchmarks in math-equivalence: Hendrycks' MATH, GSM8K, numbers of a language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.contract import info_of
from cbench_server.evaluators import MathEquivalence
from cbench_server.evaluators.math.hendrycks import is_equivalent

# Two answers, and whether the MATH dataset's own grader takes them for equal.
_HENDRYCKS = [
    (r"\frac{1}{2}", r"\dfrac12", True),
    (r"\frac{1}{2}", "0.5", True),
    (r"\frac{1}{2}", "1/2", True),
    (r"\frac{1}{2}", "0.50", False),
    (r"\frac{2}{3}", "2/3", True),
    (r"\frac{2}{3}", "4/6", False),
    (r"\frac{1}{72}", r"\tfrac1{72}", True),
    (r"\frac{72}{1}", r"\frac{72}1", False),
    (r"\sqrt{3}", r"\sqrt3", True),
    (r"2\sqrt{12}", r"2\sqrt12", False),
    ("5", r"5\text{ cm}", True),
    ("5", r"5\text{cm}", False),
    ("90", r"90^\circ", True),
    ("50", r"50\%", True),
    (r"\$18.90", "18.90", True),
    ("x=7", "7", True),
    ("k = 7", "7", True),
    ("abc=7", "7", False),
    ("0.25", ".25", True),
    (r"\left(3, \frac{\pi}{2}\right)", r"(3,\frac{\pi}{2})", True),
    ("(1,2)", "(2,1)", False),
    ("1,000", "1000", False),
    ("-3/4", r"-\frac{3}{4}", False),
    ("-3/4", r"\frac{-3}{4}", True),
    ("1/2/3", r"\frac{1}{2}/3", False),
    ("1{,}000", "1{,}000", True),
    ("x^2", "X^2", False),
    ("1 000", "1000", True),
    (" 10 000", "10 000", True),
    (r"\tfrac 1 2", r"\tfrac12", True),
    (r"\frac 1 2", "0.5", True),
    ("x^2 3", "x^23", True),
    (r"\frac", r"\frac", True),
    (r"\sqrt", "", False),
]

# Pairs that it takes for equal, although they differ in what it drops from both.
_FALSELY_EQUAL = [
    ("\\$5", r"5\text{ cents}"),
    (r"1\text{ or }2", "1"),
    (r"5\text{ ft }6\text{ in}", "5"),
    (r"12:00\text{ a.m.}", r"12:00\text{ p.m.}"),
    (r"25\text{ square units}", r"25\text{ cubic units}"),
    (r"5\text{ cm}", r"5\text{ inches}"),
    (r"\text{ yes}", r"\text{ no}"),
    ("x=5", "y=5"),
    ("x=5", "-x=5"),
    ("3 1/2", "31/2"),
    ("1 2", "12"),
    (r"\frac{1 2}{3}", r"\frac{12}{3}"),
]


@pytest.mark.parametrize(("gold", "given_text", "equal"), _HENDRYCKS)
def test_tidied_latex_is_compared_as_text(gold: str, given_text: str, equal: bool) -> None:
    assert is_equivalent(gold, given_text) is equal
    assert is_equivalent(given_text, gold) is equal


@pytest.mark.parametrize(("gold", "given_text"), _FALSELY_EQUAL)
def test_what_differs_is_not_equal(gold: str, given_text: str) -> None:
    assert not is_equivalent(gold, given_text)
    assert not is_equivalent(given_text, gold)
    assert is_equivalent(gold, gold)


@pytest.mark.parametrize(
    ("response", "score"),
    [
        (r"So the answer is \boxed{\dfrac12}.", 1.0),
        (r"First \boxed{3}, but then \boxed{\frac{1}{2}}.", 1.0),
        ("The answer is $1/2$.", 1.0),
        ("We get $x=1$ and $1/2$", 0.0),
        ("1/2", 1.0),
        ("The answer is 1/2", 0.0),
        ("", 0.0),
    ],
)
def test_the_last_box_counts_or_what_dollars_enclose(response: str, score: float) -> None:
    row = {"answer": r"\frac{1}{2}"}
    evaluator = MathEquivalence(rule="hendrycks")
    assert evaluator.score(row, {"response": response}) == {"math_hendrycks": score}


_VERIFY = [
    (r"\frac{1}{2}", "So it is $0.5$.", 1.0),
    (r"\frac{1}{2}", r"Then \boxed{\frac{2}{4}} is the answer.", 1.0),
    (r"\frac{1}{3}", "The answer is 0.3333", 0.0),
    ("x^2+2x+1", "$(x+1)^2$", 1.0),
    ("x=5", "$y=5$", 0.0),
    ("5", "The final answer is 5. I hope it is correct.", 1.0),
    ("5", "The answer is -5.", 0.0),
    (r"\{1,2\}", r"$\{2,1\}$", 1.0),
    (r"5\text{ cm}", r"$5\text{ inches}$", 0.0),
    (r"5\text{ cm}", r"$5\text{ cm}$", 1.0),
    ("5", "", 0.0),
    ("5", "no number", 0.0),
]


@pytest.mark.parametrize(("answer", "response", "score"), _VERIFY)
def test_math_verify_finds_and_compares_by_itself(answer: str, response: str, score: float) -> None:
    evaluator = MathEquivalence(rule="verify")
    assert evaluator.score({"answer": answer}, {"response": response}) == {"math_verify": score}
    assert info_of(evaluator).placement == "worker"


# A response, and whether lm-eval's strict and flexible match find 1800 in it.
_GSM8K = [
    ("So it is 1800.\n#### 1800", 1.0, 1.0),
    ("#### 1,800", 1.0, 1.0),
    ("#### $1800", 0.0, 1.0),
    ("####1800", 0.0, 1.0),
    ("#### 1800.", 1.0, 1.0),
    ("#### 1800.0", 0.0, 0.0),
    ("#### 5 ... #### 1800", 0.0, 1.0),
    ("#### 1800\nThe next one is 7.", 1.0, 0.0),
    ("The answer is $1,800.", 0.0, 1.0),
    ("The answer is -1800", 0.0, 0.0),
    ("1800 ...", 0.0, 0.0),
    ("no number", 0.0, 0.0),
    ("", 0.0, 0.0),
]


@pytest.mark.parametrize(("response", "strict", "flexible"), _GSM8K)
@pytest.mark.parametrize("answer", ["1800", "1,800", "6 * 300 = 1800\n#### 1800"])
def test_gsm8k_has_a_strict_and_a_flexible_match(
    response: str, strict: float, flexible: float, answer: str
) -> None:
    scores = MathEquivalence(rule="gsm8k").score({"answer": answer}, {"response": response})
    assert scores == {"gsm8k_strict": strict, "gsm8k_flexible": flexible}


_IN_ITS_LANGUAGE = [
    ("de", "1800", "Die Antwort lautet 1.800."),
    ("de", "70000", "Antwort: 70.000 Euro"),
    ("de", "1234.5", "Antwort: 1.234,5"),
    ("de", "3.5", "Antwort: 3,5"),
    ("de", "1800", "Antwort: 1’800 Franken"),
    ("es", "1234567", "La respuesta es 1.234.567."),
    ("es", "2.5", "La respuesta es 2.5"),
    ("fr", "1800", "La réponse est 1\u202f800."),
    ("fr", "70000", "La réponse est 70\u00a0000 euros."),
    ("fr", "1800", "La réponse est 1.800."),
    ("ru", "18", "Ответ — 18."),
    ("ru", "18", "Ответ – 18"),
    ("ru", "70000", "Ответ — 70 000."),
    ("ru", "-18", "Ответ: -18"),
    ("ru", "-18", "Ответ — -18."),
    ("en", "1.8", "The answer is 1.800"),
    ("ja", "18", "答えは18です。"),
    ("zh", "1800", "答案是1,800。"),
    ("bn", "18", "উত্তর - 18"),
    ("th", "18", "คำตอบคือ 18"),
    ("te", "18", "సమాధానం 18."),
    ("sw", "1800", "Jibu ni 1,800."),
]


@pytest.mark.parametrize(("language", "answer", "response"), _IN_ITS_LANGUAGE)
def test_numbers_are_read_as_the_language_writes_them(
    language: str, answer: str, response: str
) -> None:
    row, said = {"answer": answer, "language": language}, {"response": response}
    assert MathEquivalence(language=language).score(row, said) == {"math_equiv": 1.0}
    assert MathEquivalence(language="field").score(row, said) == {"math_equiv": 1.0}
    other = {**row, "answer": f"{float(answer) + 1:g}"}
    assert MathEquivalence(language=language).score(other, said) == {"math_equiv": 0.0}


def test_without_a_language_a_point_is_a_decimal_point() -> None:
    for evaluator in (MathEquivalence(), MathEquivalence(language="field")):
        assert evaluator.score({"answer": "70"}, {"response": "70.000"}) == {"math_equiv": 1.0}
        assert evaluator.score({"answer": "70000"}, {"response": "70.000"}) == {"math_equiv": 0.0}


def test_a_rule_says_what_it_scores_and_the_default_is_as_it_was() -> None:
    plain, strict = info_of(MathEquivalence()), info_of(MathEquivalence(rule="gsm8k"))
    assert [info.name for info in plain.scores] == ["math_equiv"]
    assert (plain.placement, plain.options) == ("worker", {"strip_thinking": True})
    assert [info.name for info in strict.scores] == ["gsm8k_strict", "gsm8k_flexible"]
    assert (strict.placement, strict.options) == (
        "inline",
        {"rule": "gsm8k", "strip_thinking": True},
    )


def test_unknown_options_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match='rule "minerva" is not one of: hendrycks, verify, gsm8k'):
        MathEquivalence(rule="minerva")
    with pytest.raises(ValueError, match='language "xx" is not "field" or one of: bn, de'):
        MathEquivalence(language="xx")


_LATEX = st.lists(
    st.sampled_from(
        [r"\frac", r"\sqrt", "{", "}", "1", "2", "/", "=", " ", ".", r"\text{ ", "cm", "x", r"\%"]
    ),
    max_size=10,
).map("".join)


@given(_LATEX | st.text(), _LATEX | st.text())
def test_equality_goes_both_ways_and_holds_for_the_same(one: str, other: str) -> None:
    assert is_equivalent(one, one)
    assert is_equivalent(one, other) == is_equivalent(other, one)


@pytest.mark.parametrize(
    ("gold", "given"),
    [
        ("x^2 + 10x=5", "x^2+10x=5"),
        (r"\dfrac{3}{4}k = 7", r"\frac{3}{4}k=7"),
        ("x = 5", "5"),
    ],
)
def test_what_only_spaces_and_styles_tell_apart_is_equal(gold: str, given: str) -> None:
    assert is_equivalent(gold, given)
    assert is_equivalent(given, gold)


@pytest.mark.parametrize("rule", ["hendrycks", "gsm8k"])
@pytest.mark.parametrize("piece", ["#### ", "9", r"\frac", r"\boxed{", "$", "1.", "1 ", "-"])
def test_a_long_text_of_one_kind_is_scored(rule: str, piece: str) -> None:
    said = {"response": piece * (200_000 // len(piece))}
    scores = MathEquivalence(rule=rule, language="de").score({"answer": "5"}, said)
    assert set(scores.values()) == {0.0}


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("Die Antwort ist 1.800.", 1.0),
        ("Es sind 1 800", 0.0),
        ("Ответ — 1800", 1.0),
        ("$1,800", 1.0),
        ("1800 und dann 7", 0.0),
        ("keine", 0.0),
    ],
)
def test_mgsm_compares_the_digits_of_the_last_number(response: str, score: float) -> None:
    scores = MathEquivalence(rule="mgsm").score({"answer": "1800"}, {"response": response})
    assert scores == {"mgsm_flexible": score}
