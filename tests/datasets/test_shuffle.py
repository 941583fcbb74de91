"""Shuffling: all examples, in an order that only the seed decides."""

import subprocess
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cbench_server.datasets.shuffle import shuffled


def _examples(count: int) -> list[dict[str, Any]]:
    return [{"id": f"e{n}", "context": "c"} for n in range(count)]


@given(st.integers(0, 50), st.integers())
def test_nothing_is_lost_and_the_seed_fixes_the_order(count: int, seed: int) -> None:
    once, again = [[*shuffled(iter(_examples(count)), seed)] for _ in range(2)]
    assert once == again
    assert sorted(once, key=lambda e: int(e["id"][1:])) == _examples(count)


def test_seeds_give_different_orders() -> None:
    orders = {tuple(e["id"] for e in shuffled(iter(_examples(30)), seed)) for seed in range(5)}
    assert len(orders) == 5
    assert tuple(e["id"] for e in _examples(30)) not in orders


def test_an_example_without_an_id_keeps_its_position_in_the_source() -> None:
    examples = [{"context": f"c{n}"} for n in range(20)]
    for example in shuffled(iter(examples), seed=1):
        assert example["context"] == f"c{example['id']}"


def test_values_come_back_as_they_were() -> None:
    example = {"id": 2**80, "context": "ü", "kwargs": [{"n": None, "x": 1.5, "b": True}]}
    assert [*shuffled(iter([example]), seed=0)] == [example]


def test_memory_stays_flat_while_much_is_shuffled() -> None:
    program = """
import resource
from cbench_server.datasets.shuffle import shuffled
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
many = ({"id": n, "context": "x" * 100_000} for n in range(2_000))
assert sum(1 for _ in shuffled(many, 1)) == 2_000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(done.stdout) < 60
