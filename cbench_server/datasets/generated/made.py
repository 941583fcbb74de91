"""What a maker makes of one example, and where the parts of it go."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cbench_server.datasets.generated.draws import Draws
from cbench_server.datasets.generated.parameters import Parameters
from cbench_server.types import Example

# Forty depths from one end of the context to the other.
DEPTHS = tuple(place * 100 // 39 for place in range(40))


@dataclass(frozen=True, slots=True)
class Made:
    """A context with a question, every text that is asked for, and the parts that give it away."""

    context: str
    question: str
    answers: Sequence[str]
    evidence: Sequence[str]
    depth: int | None = None
    """Where the evidence is in percent; None where it is in several places."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One example that is wanted: its length in tokens, its depth if that is given, its draws."""

    length: int
    depth: int | None
    draws: Draws
    data_dir: str = ""
    """The mirror, for tasks that read one."""
    haystack: str = ""
    """A text of it to hide things in, where one is named."""

    def depths(self, count: int) -> list[int]:
        """Return different depths in order, or the one that was asked for as often."""
        if self.depth is not None:
            return [self.depth] * count
        return sorted(self.draws.sample(DEPTHS, count))


Maker = Callable[[Wanted], Made]


def examples(
    dataset: str, task: str, make: Maker, asked: Parameters, data_dir: str = ""
) -> Iterator[Example]:
    """Make the examples that the parameters ask for, one after the other."""
    for length in asked.lengths:
        for depth in asked.depths or (None,):
            for number in range(asked.count):
                place = "" if depth is None else f"-d{depth}"
                draws = Draws(asked.seed, dataset, task, length, place, number)
                made = make(Wanted(length, depth, draws, data_dir, asked.haystack))
                yield _example(f"{task}-{length}{place}-{number}", task, length, made)


def _example(example_id: str, task: str, length: int, made: Made) -> Example:
    group = {} if made.depth is None else {"depth": made.depth}
    return {
        "id": example_id,
        "task": task,
        "length": length,
        **group,
        "context": made.context,
        "question": made.question,
        "answer": ", ".join(made.answers),
        "answers": list(made.answers),
        "evidence": list(made.evidence),
    }
