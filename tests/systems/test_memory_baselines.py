"""Memories that need no model."""

from typing import Any

import pytest

from cbench_server.errors import InvalidInput
from cbench_server.systems.memories import Bm25, FullHistory, LastN
from cbench_server.tokens import count_tokens
from cbench_server.types import MemorySystem

TURNS = [
    {"role": "user", "content": f"On day {day} we ate {food}.", "time": f"2024-01-0{day}"}
    for day, food in enumerate(["soup", "bread", "Maultaschen", "rice", "bread with cheese"], 1)
]


def fed(system: Any, turns: list[dict[str, Any]] = TURNS) -> Any:
    system.ingest(turns[:2])
    system.ingest(turns[2:])
    return system


def test_full_history_returns_every_turn_with_its_time() -> None:
    lines = fed(FullHistory()).query("anything")["context"].splitlines()
    assert len(lines) == 5
    assert lines[2] == "[2024-01-03] user: On day 3 we ate Maultaschen."


def test_last_n_returns_the_end_in_order_of_time() -> None:
    lines = fed(LastN(n=2)).query("soup?")["context"].splitlines()
    assert [line[:12] for line in lines] == ["[2024-01-04]", "[2024-01-05]"]


def test_bm25_finds_the_rare_word_and_keeps_the_order_of_time() -> None:
    system = fed(Bm25(k=2))
    assert "Maultaschen" in system.query("Who likes maultaschen?")["context"]
    lines = system.query("bread cheese")["context"].splitlines()
    assert [line[:12] for line in lines] == ["[2024-01-02]", "[2024-01-05]"]


def test_bm25_returns_nothing_where_no_word_is_shared() -> None:
    system = fed(Bm25())
    assert system.query("xylophone")["context"] == ""
    assert system.query("?!")["context"] == ""
    assert Bm25().query("anything")["context"] == ""


def test_bm25_takes_more_turns_after_a_question() -> None:
    system = fed(Bm25(k=1))
    system.query("soup")
    system.ingest([{"role": "user", "content": "Then a xylophone played."}])
    assert "xylophone" in system.query("xylophone")["context"]


@pytest.mark.parametrize("system", [FullHistory(), LastN(n=5), Bm25(k=5)], ids=lambda s: s.name)
@pytest.mark.parametrize("budget", [1, 20, 45, 1000])
def test_a_budget_is_never_exceeded_and_is_used(system: Any, budget: int) -> None:
    system.reset()
    context = fed(system).query("On which day did we eat bread?", budget=budget)["context"]
    assert count_tokens(context) <= budget
    whole = system.query("On which day did we eat bread?")["context"]
    assert (context == whole) == (budget == 1000)


def test_a_reset_forgets_everything() -> None:
    for system in (FullHistory(), LastN(), Bm25()):
        fed(system).reset()
        said = system.query("bread")
        assert (said["context"], said["stored_bytes"]) == ("", 0)


def test_stored_bytes_are_those_of_the_lines() -> None:
    system = FullHistory()
    said = system.ingest([{"role": "user", "content": "é"}])
    assert said == {"stored_bytes": len("user: é".encode())}


@pytest.mark.parametrize("make", [lambda: LastN(n=0), lambda: Bm25(k=-1), lambda: Bm25(k=2.5)])
def test_a_number_of_turns_below_one_is_refused(make: Any) -> None:
    with pytest.raises(InvalidInput, match="from 1 on"):
        make()


def test_they_are_memory_systems() -> None:
    assert all(isinstance(kind(), MemorySystem) for kind in (FullHistory, LastN, Bm25))
