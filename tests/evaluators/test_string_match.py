"""StringMatch and SubspanExactMatch: their options; the numbers are in the vectors."""

import pytest

from cbench_server.errors import InvalidInput
from cbench_server.evaluators import StringMatch, SubspanExactMatch


def test_all_gives_the_share_and_part_any_of_them() -> None:
    pair = {"answers": ["Alpha", "beta", "gamma"]}, {"response": "alpha, then BETA"}
    assert StringMatch().score(*pair) == {"string_match": 2 / 3}
    assert StringMatch(mode="part").score(*pair) == {"string_match": 1.0}


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidInput, match='no mode "any"; it is all or part'):
        StringMatch(mode="any")  # type: ignore[arg-type] # that is what is tested


def test_a_subspan_is_looked_for_in_the_first_line_unless_all_is_asked_for() -> None:
    pair = {"answer": "the Eiffel Tower"}, {"response": "I know.\nIt is the Eiffel-Tower!"}
    assert SubspanExactMatch().score(*pair) == {"subspan_em": 0.0}
    pair[0]["answer"] = "eiffeltower"
    assert SubspanExactMatch(first_line=False).score(*pair) == {"subspan_em": 1.0}
