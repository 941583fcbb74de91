"""No text makes a step hold the event loop: fragments alone, in pairs, as beginning and end.

The fragments are those of the security review and more: cues, brackets, marks and letters that
patterns look for. `make test` tries each alone and some pairs, `make hostile` all pairs.
"""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from .corpus import FRAGMENTS, all_pairs, alone, some_pairs
from .steps import LONGEST_S, Step, cpu_seconds_afresh, steps

ROOT = Path(__file__).resolve().parents[2]
EVERY = dict(steps())


def worst(step: Step, texts: "itertools.chain[tuple[str, str]]") -> tuple[float, str]:
    """Return the longest CPU time of a step, and the text that took it."""
    return max((cpu_seconds_afresh(step, text), name) for name, text in texts)


@pytest.mark.parametrize("name", EVERY)
def test_no_step_holds_the_loop(name: str) -> None:
    seconds, text = worst(EVERY[name], itertools.chain(alone(), some_pairs()))
    print(f"worst of {name}: {seconds * 1000:.1f} ms of CPU for {text}")
    assert seconds <= LONGEST_S, f"{name} held the loop for {seconds * 1000:.0f} ms: {text}"


def test_every_fragment_is_there_once() -> None:
    assert len(set(FRAGMENTS)) == len(FRAGMENTS) >= 90


def test_the_parts_of_all_pairs_are_all_of_them() -> None:
    names = [name for part in range(40) for name, _ in itertools.islice(all_pairs(part, 40), 3)]
    assert len(set(names)) == len(names) == 120
    texts = {text for _, text in itertools.islice(all_pairs(), 500)}
    assert len(texts) > 490


def test_a_part_of_the_whole_corpus_can_be_driven_by_hand() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "hostile.py"), "--part", "7/50000"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(EVERY)} steps" in done.stdout
    assert "worst step:" in done.stdout
    assert "million passes of an empty loop" in done.stdout


def test_a_step_that_wanders_is_found() -> None:
    """The guard itself works: a pattern that is quadratic is over the limit."""
    import re

    wandering = re.compile(r"(?:#+)+x")
    assert cpu_seconds_afresh(lambda text: wandering.search(text[:24]), "#" * 24) > LONGEST_S


def test_a_pattern_made_of_the_text_is_found_however_often_it_is_tried() -> None:
    """What `re` keeps of the first try does not hide what a pattern costs to make."""
    import re

    def made(text: str) -> None:
        re.compile("|".join(f"{text}{number}" for number in range(20_000)))

    assert cpu_seconds_afresh(made, "a") > LONGEST_S
