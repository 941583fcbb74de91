"""The Protocols: what a system, an evaluator, a metric and a memory system are.

All are structural. Implement the methods on any class; nothing is subclassed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from cbench_server.results import EvalRow

Example = dict[str, Any]
Scores = dict[str, float]

Placement = Literal["inline", "thread", "worker", "io"]
"""Where an evaluator runs: `inline` on the event loop for small inputs, `thread`
(the default), `worker` in a separate program that may be killed, `io` awaited."""


@runtime_checkable
class System(Protocol):
    """The thing under test.

    A system may also offer `aprocess(example)`, which is awaited instead;
    `process_conversation(turns)` for multi-turn examples; and `version`, by
    which stored answers are known to be its own. A method that names a
    parameter `instruction` is told what the dataset asks of whoever answers.
    """

    @property
    def name(self) -> str: ...

    def process(self, example: Example) -> Example:
        """Return the processed example: usually a copy with `response` or a new `context`."""
        ...


@dataclass(frozen=True)
class Assessment:
    """Scores with what led to them."""

    scores: Scores
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoreInfo:
    """One kind of score, for listings and reports."""

    name: str
    description: str
    higher_is_better: bool = True
    worst: float | None = None
    """What a row counts that has no score because its system failed.

    Without it that is 0.0 for a score where higher is better, as long as all
    values lie between 0 and 1; any other score has no mean when rows failed.
    """


@runtime_checkable
class Evaluator(Protocol):
    """Scores what a system made of an example.

    An evaluator may also offer `async assess(original, processed)`, which
    returns an `Assessment` and raises `EvaluatorBroken` when its own machinery
    fails; and what it says of itself, all of which is in contract.py, such as
    a `placement`, and a `version`, which changes whenever equal pairs may score
    differently.
    """

    @property
    def name(self) -> str: ...

    def score(self, original: Example, processed: Example) -> Scores:
        """Compare `processed` with `original` and name each score.

        A score that does not apply to the original is left out rather than
        set to zero. In a run, `applies(original)`, where an evaluator has it,
        else its `required_fields`, decide which rows those are.
        """
        ...


@runtime_checkable
class Metric(Protocol):
    """Summarises the rows of one system."""

    @property
    def name(self) -> str: ...

    def compute(self, rows: Sequence[EvalRow]) -> Mapping[str, float | None]:
        """Return named values; None where a value is not defined."""
        ...


@runtime_checkable
class MemorySystem(Protocol):
    """A system that is fed a conversation and then asked about it.

    A method may also name a `scope` parameter, by which one object keeps many
    conversations apart, and `query` may name `budget`, the most tokens of
    remembered text to hand to a model, `asked_at`, and `instruction`, what the
    dataset asks of whoever answers. An awaited twin
    (`areset`, `aingest`, `aquery`) is used instead where there is one.
    """

    @property
    def name(self) -> str: ...

    def reset(self) -> None:
        """Forget everything."""
        ...

    def ingest(self, turns: list[dict[str, Any]]) -> object:
        """Remember turns, which come in order of time.

        A turn has `role` and `content` and, where they are known, `speaker`,
        `time` and `session`. A long conversation comes in several calls. What
        is returned may say the `stored_bytes`.
        """
        ...

    def query(self, question: str) -> str | Mapping[str, Any]:
        """Answer from what is remembered.

        A system may return a dict instead: a `response`, the `context` it was
        drawn from, or only the context if it leaves answering to a reader;
        further `context_tokens`, `stored_bytes`, `usage` and `metadata`.
        """
        ...
