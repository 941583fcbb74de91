"""Number words: as good as digits where they can mean nothing else, and nothing where they can."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cbench_server.texts.number_words import with_digits
from cbench_server.texts.presence import SearchedText, phrase_of

_BELOW_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def is_in(answer: str, text: str) -> bool:
    phrase = phrase_of(answer)
    assert phrase is not None
    return SearchedText(text).contains(phrase)


def spelled(number: int, *, british: bool = False, hyphen: str = "-") -> str:
    """Write a number out, as a person would."""
    for size, name in (
        (10**12, "trillion"),
        (10**9, "billion"),
        (10**6, "million"),
        (1000, "thousand"),
    ):
        if number >= size:
            most, rest = divmod(number, size)
            link = " and " if british and 0 < rest < 100 else " "
            tail = f"{link}{spelled(rest, british=british, hyphen=hyphen)}" if rest else ""
            return f"{spelled(most, british=british, hyphen=hyphen)} {name}{tail}"
    if number >= 100:
        most, rest = divmod(number, 100)
        link = " and " if british else " "
        tail = f"{link}{spelled(rest, hyphen=hyphen)}" if rest else ""
        return f"{_BELOW_TWENTY.split()[most]} hundred{tail}"
    if number >= 20:
        most, rest = divmod(number, 10)
        return _TENS.split()[most - 2] + (f"{hyphen}{_BELOW_TWENTY.split()[rest]}" if rest else "")
    return _BELOW_TWENTY.split()[number]


# All sizes equally often.
numbers = (
    st.integers(0, 14).flatmap(lambda digits: st.integers(0, 10**digits)).filter(lambda n: n != 1)
)
sentences = st.sampled_from(["{}", "There were {} of them.", '{{"n": "{}"}}', "a,{},b", "({})\n"])


@given(numbers, sentences, st.booleans(), st.sampled_from(["-", " ", "\n"]), st.booleans())
def test_a_number_is_found_in_words_and_words_as_a_number(
    number: int, sentence: str, british: bool, hyphen: str, shouts: bool
) -> None:
    words = spelled(number, british=british, hyphen=hyphen)
    words = words.upper() if shouts else words
    for digits in (str(number), f"{number:,}"):
        assert is_in(digits, sentence.format(words))
        assert is_in(words, f"There were {digits} of them.")
    assert is_in(words, sentence.format(words))


@given(numbers, numbers, sentences, st.booleans())
def test_no_number_is_found_in_the_words_of_another(
    number: int, other: int, sentence: str, british: bool
) -> None:
    assume(number != other)
    text = sentence.format(spelled(other, british=british))
    assert not is_in(str(number), text)
    assert not is_in(spelled(number), text)
    assert not is_in("1", text)


@given(
    st.integers(1, 999_999).map(lambda thousandths: thousandths / 1000),
    st.sampled_from([("thousand", 10**3), ("million", 10**6), ("billion", 10**9)]),
    st.sampled_from([" ", "-", "\n"]),
)
def test_digits_with_a_magnitude_are_their_product(
    digits: float, magnitude: tuple[str, int], step: str
) -> None:
    name, factor = magnitude
    text = f"It took {digits}{step}{name} years."
    assert is_in(str(round(digits * factor)), text)
    assert not is_in(str(digits), text)


@pytest.mark.parametrize(
    "text",
    [
        "one of them",
        "no one was there",
        "a hundred reasons",
        "half a million",
        "two thirds of it",
        "two-thirds of it",
        "hundreds and thousands",
        "someone often weighs a tenth",
        "1/2 million",
    ],
)
def test_what_may_mean_something_else_stays_as_it_is(text: str) -> None:
    assert with_digits(text) == text


@pytest.mark.parametrize("text", ["twenty\tfive", "twenty  five", "twenty,five", "twenty | five"])
def test_cells_of_a_table_are_no_number_of_several_words(text: str) -> None:
    assert is_in("20", text)
    assert is_in("5", text)
    assert not is_in("25", text)


def test_a_number_after_one_in_another_cell_is_its_own() -> None:
    assert is_in("1500000", "lorem,10,1.5 million")
    assert is_in("250 million", "lorem,7,250 million,x")
    assert is_in("7,250 million", "It cost 7,250 million.")


@pytest.mark.parametrize("unit", ["seven ", "seven and ", "1 ", "1,000,", "one-", "5 million\n"])
def test_a_megabyte_of_numbers_is_read_in_linear_time(unit: str) -> None:
    assert not is_in("35", unit * (1_000_000 // len(unit)))
