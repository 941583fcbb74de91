"""The spec of a run, which says what it was asked to do, and the record kept of it."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any, Literal

from cbench_server.results import Failure, Summary

Options = dict[str, Any]

# Fields that came after the first release. While they have their defaults they are in no digest,
# so that what was stored before is still known by its own.
_LATER = {"since": 2}
_UNRANKED = ("anchor", "direct")
RUN_FILE_LABEL = "cbench.run-file"
"""The label under which a run that a file started keeps what that file says."""
# Asks for nothing, so it is never in a digest.
_RECORD = {"is_record": True}


@dataclass(frozen=True)
class PriceRef:
    """What a model charges, in US dollars per million tokens."""

    input_usd: float = 0.0
    output_usd: float = 0.0
    cached_input_usd: float | None = None
    """None means as much as others."""


ANSWER_LIMITS = ("max_tokens", "max_completion_tokens")
"""Options by which endpoints take the most tokens of an answer."""


@dataclass(frozen=True)
class ModelRef:
    """A model behind an OpenAI-compatible endpoint."""

    base_url: str
    model: str = ""
    credential: str = ""
    options: Options = field(default_factory=dict)
    system_prompt: str = ""
    price: PriceRef | None = field(default=None, metadata=_LATER)
    max_concurrency: int | None = field(default=None, metadata=_LATER)
    timeout: float | None = field(default=None, metadata=_LATER)
    context_window: int | None = field(default=None, metadata=_LATER)

    @property
    def own_limit(self) -> str:
        """The option by which it has a limit of its own for the tokens of an answer, if any."""
        return next((name for name in ANSWER_LIMITS if name in self.options), "")


@dataclass(frozen=True)
class PromptRef:
    """What models are told besides an example."""

    template: str = ""
    """Empty means each dataset's own."""
    system_prompt: str = ""
    few_shot: int = 0
    max_tokens: int | None = None
    plain: bool = False
    """Whether to send nothing but the example's own texts."""


@dataclass(frozen=True)
class TlsRef:
    """How to secure a connection to a system."""

    ca_pem: str = ""
    server_name: str = ""


@dataclass(frozen=True)
class SystemRef:
    """Where to find a system: exactly one of the five locations is set."""

    name: str = ""
    target: str = ""
    attached: str = ""
    builtin: str = ""
    proxy: ModelRef | None = None
    served_name: str = ""
    options: Options = field(default_factory=dict)
    tls: TlsRef | None = None
    credential: str = ""
    predictions: str = field(default="", metadata=_LATER)
    """The digest of uploaded outputs."""
    role: Literal["", "control", "anchor", "direct"] = field(default="", metadata=_LATER)
    """What it is there for; empty means that it is under test."""
    swept_option: str = field(default="", metadata=_LATER)
    replicas: tuple[str, ...] = field(default=(), metadata=_LATER)
    """Targets of further processes that serve the same system."""
    log: str = field(default="", metadata=_RECORD)
    """Where the client that launched it keeps what it prints."""
    revision: str = field(default="", metadata=_RECORD)
    """The commit of the program that was launched, with `-dirty` where files differ."""


@dataclass(frozen=True)
class EvaluatorRef:
    """Where to find an evaluator: registered here unless a location is set."""

    name: str
    target: str = ""
    attached: str = ""
    options: Options = field(default_factory=dict)
    label: str = field(default="", metadata=_LATER)


@dataclass(frozen=True)
class MetricRef:
    """A metric and its settings."""

    name: str
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetRef:
    """Which examples to use."""

    name: str
    config: str = ""
    max_examples: int | None = None
    upload: str = ""
    split: str = ""
    shuffle: bool = False
    where: dict[str, str] = field(default_factory=dict)
    skip_bad_lines: bool = False
    revision: str = ""
    mapping: dict[str, str] = field(default_factory=dict, metadata=_LATER)
    """Where to find an example's fields in what the source holds."""
    as_transcript: bool = field(default=False, metadata=_LATER)
    """Whether conversations go to systems without a memory."""

    @property
    def label(self) -> str:
        """The tag its rows carry."""
        return f"{self.name}:{self.config}" if self.config else self.name


@dataclass(frozen=True)
class RunSpec:
    """What to evaluate."""

    systems: tuple[SystemRef, ...]
    datasets: tuple[DatasetRef, ...]
    evaluators: tuple[EvaluatorRef, ...] = ()
    metrics: tuple[MetricRef, ...] = ()
    row_timeout: float = 60.0
    max_concurrency: int | None = None
    expose_reference_fields: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    kind: Literal["process", "memory"] = "process"
    repeats: int = 1
    max_failures: str = ""
    reader: ModelRef | None = None
    score_field: str = ""
    threshold: float = 0.7
    tokenizer: str = ""
    text_fields: tuple[str, ...] = ()
    seed: int = 0
    reuse: bool = False
    wait_timeout: float = 600.0
    replace_evaluators: bool = False
    reference_fields: tuple[str, ...] = ()
    query_budget: int | None = None
    question_types: tuple[str, ...] = ()
    prompt: PromptRef | None = field(default=None, metadata=_LATER)
    budget_usd: float | None = field(default=None, metadata=_LATER)
    matched_controls: bool = field(default=False, metadata=_LATER)
    anchors: bool | None = field(default=None, metadata=_LATER)
    """None means yes in a run with a reader."""
    group_by: tuple[str, ...] = field(default=(), metadata=_LATER)
    errata_upload: str = field(default="", metadata=_LATER)
    labels_upload: str = field(default="", metadata=_LATER)
    allow_unqualified_judges: bool = field(default=False, metadata=_LATER)
    timed_rows: int | None = field(default=None, metadata=_LATER)
    """None means 30."""
    asked_again: int | None = field(default=None, metadata=_LATER)
    """None means 5."""
    options: Options = field(default_factory=dict, metadata=_LATER)
    """For every system that takes them."""

    @property
    def given_labels(self) -> dict[str, str]:
        """The labels that somebody gave; a run file is kept as one too."""
        return {name: text for name, text in self.labels.items() if name != RUN_FILE_LABEL}


def plain_spec(spec: Any) -> Any:
    """Give a spec, or a part of it, as plain data without later fields that have their defaults."""
    if is_dataclass(spec):
        return {
            each.name: plain_spec(value)
            for each in fields(spec)
            if "is_record" not in each.metadata
            and not ((value := getattr(spec, each.name)) == _default(each) and each.metadata)
        }
    if isinstance(spec, tuple | list):
        return [plain_spec(each) for each in spec]
    return spec


def _default(of: Any) -> Any:
    return of.default if of.default_factory is MISSING else of.default_factory()


class RunState(StrEnum):
    """The life of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the run is over, unless someone resumes it."""
        return self in (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


@dataclass(frozen=True)
class SystemProgress:
    """How far one system has come, in rows."""

    completed: int = 0
    failed: int = 0
    reused: int = 0


@dataclass(frozen=True)
class RunNote:
    """A sentence that belongs beside a run's figures."""

    code: str
    """A stable UPPER_SNAKE_CASE identifier."""
    text: str
    system: str = ""
    """Empty means all of them."""
    dataset: str = ""


BUDGET_SPENT = "BUDGET_SPENT"
"""Why a request is not made, or a run ends, that may cost more than its budget has left."""
STOPPED_BY_BUDGET = "STOPPED_BY_BUDGET"
"""The note of a run whose figures do not cover all examples, since it had a budget and ended."""


def renewed(earlier: Iterable[RunNote], notes: Sequence[RunNote]) -> tuple[RunNote, ...]:
    """Put notes in the place of those that said the same earlier."""
    new = {(note.code, note.system, note.dataset) for note in notes}
    kept = [note for note in earlier if (note.code, note.system, note.dataset) not in new]
    return (*kept, *notes)


@dataclass(frozen=True)
class Lives:
    """How often in a row the process that worked on a run has died."""

    deaths: int = 0
    rows: int = 0
    """Those that were stored when the run was last taken up."""


@dataclass(frozen=True)
class Run:
    """One evaluation, past or present. Times are seconds since the epoch."""

    run_id: str
    spec: RunSpec
    state: RunState
    create_time: float
    end_time: float | None = None
    total_rows: int | None = None
    """Known once every dataset has been read to its end."""
    progress: dict[str, SystemProgress] = field(default_factory=dict)
    summary: Summary = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    waiting_reason: str = ""
    parent_run_id: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    request_id: str = ""
    last_seq: int = 0
    systems: tuple[str, ...] = ()
    """The names of its systems, in order, once they have been described."""
    notes: tuple[RunNote, ...] = ()
    lives: Lives = field(default_factory=Lives)
    created_by: str = ""
    """The name of the token that started it; empty where none was asked for."""
    damage: str = ""
    """What of it is damaged in the store, in a sentence; all but the id is unknown then."""

    def rows_of(self, examples: int, system: str | None = None) -> int:
        """How many rows so many examples become: of one system, or of all of them."""
        systems = [system] if system is not None else self.systems or [""] * len(self.spec.systems)
        # What the run adds may get some of the examples only.
        few: dict[str, int] = self.config.get("fixed_rows", {})
        return sum(few.get(each, examples * self.repeats_of(each)) for each in systems)

    def is_added(self, system: str) -> bool:
        """Whether the run added it by itself: a matched control or an anchor."""
        return system in self.config.get("repeats", {})

    @property
    def has_spent_budget(self) -> bool:
        """Whether its budget has stopped it; it can be resumed with more."""
        return self.failure is not None and self.failure.reason == BUDGET_SPENT

    @property
    def partial_note(self) -> str:
        """What to know of figures that cover only some of its examples; empty if they do not."""
        return next((note.text for note in self.notes if note.code == STOPPED_BY_BUDGET), "")

    def role_of(self, system: str) -> str:
        """What a system is there for; empty means that it is under test, or a control."""
        return str(self.config.get("roles", {}).get(system, ""))

    @property
    def heard(self) -> frozenset[str]:
        """The systems that have answered."""
        return frozenset(
            name for name, each in self.progress.items() if each.completed > each.failed
        )

    @property
    def ranked(self) -> tuple[str, ...]:
        """The systems that are ranked and compared: all but anchors and direct arms."""
        return tuple(name for name in self.systems if self.role_of(name) not in _UNRANKED)

    @property
    def unranked(self) -> tuple[str, ...]:
        """The anchors and direct arms, by which the others are understood."""
        return tuple(name for name in self.systems if self.role_of(name) in _UNRANKED)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The systems by which others are understood, and which are never ranked."""
        return tuple(name for name in self.systems if self.role_of(name) == "anchor")

    def repeats_of(self, system: str) -> int:
        """How often a system gets each example; what the run adds may differ from others in it."""
        return int(self.config.get("repeats", {}).get(system, self.spec.repeats))

    @property
    def rows_done(self) -> dict[str, int]:
        """Rows done by system, failed ones included."""
        return {name: system.completed for name, system in self.progress.items()}

    @property
    def completed_rows(self) -> int:
        """Rows done, failed ones included."""
        return sum(system.completed for system in self.progress.values())

    @property
    def failed_rows(self) -> int:
        """Rows that ended in a failure."""
        return sum(system.failed for system in self.progress.values())
