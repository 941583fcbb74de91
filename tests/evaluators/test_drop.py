"""Drop: spans, numbers and their alignment; further numbers are in the vectors."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import Drop
from cbench_server.evaluators.drop.alignment import best_alignment
from cbench_server.limits import text_size


@pytest.mark.parametrize(
    ("gold", "response", "f1", "exact"),
    [
        ("2", "2.0", 1.0, 1.0),
        ("38-yard", "38 yard", 1.0, 1.0),
        ("1,000 men", "1000 men", 1.0, 1.0),
        ("5 yards", "6 yards", 0.0, 0.0),
        ("Smith", "The Smith", 1.0, 1.0),
        ("John Smith", "Smith", 0.67, 0.0),
        ("", "x", 0.0, 0.0),
    ],
)
def test_one_span(gold: str, response: str, f1: float, exact: float) -> None:
    found = Drop().score({"answer": gold}, {"response": response})
    assert found == {"drop_f1": f1, "drop_em": exact}


def test_one_span_of_several_is_not_the_answer() -> None:
    original = {"answer": "Smith", "answer_spans": [["Smith", "Jones"]]}
    assert Drop().score(original, {"response": "Smith"}) == {"drop_f1": 0.5, "drop_em": 0.0}
    assert Drop().score(original, {"response": ["Jones", "Smith"]}) == {
        "drop_f1": 1.0,
        "drop_em": 1.0,
    }


def test_the_best_annotator_counts() -> None:
    original = {"answer_spans": [["4"], ["four"], [" "]]}
    assert Drop().score(original, {"response": "Four"}) == {"drop_f1": 1.0, "drop_em": 1.0}


_TABLES = st.integers(1, 4).flatmap(
    lambda rows: st.integers(rows, 6).flatmap(
        lambda columns: st.lists(
            st.lists(
                st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=columns, max_size=columns
            ),
            min_size=rows,
            max_size=rows,
        )
    )
)


@given(_TABLES)
def test_the_alignment_is_the_best_there_is(table: list[list[float]]) -> None:
    best = max(
        sum(row[column] for row, column in zip(table, columns, strict=True))
        for columns in permutations(range(len(table[0])), len(table))
    )
    assert sum(best_alignment(table)) == pytest.approx(best)


@pytest.mark.parametrize(("others", "f1"), [(198, 0.01), (199, 0.0), (5999, 0.0)])
def test_a_flood_of_spans_is_worth_what_it_rounds_to(others: int, f1: float) -> None:
    response = ["right", *(f"wrong{number}" for number in range(others))]
    scores = Drop().score({"answer_spans": [["right"]]}, {"response": response})
    assert scores == {"drop_f1": f1, "drop_em": 0.0}


def test_a_response_of_thousands_of_spans_is_not_compared_on_the_event_loop() -> None:
    spans = {"response": [str(number) for number in range(6_000)]}
    assert text_size(spans) > Drop.inline_limit
    assert text_size({"response": ["12", "Peyton Manning"]}) < Drop.inline_limit
