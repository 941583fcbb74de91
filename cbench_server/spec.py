"""The spec of a run, which says what it was asked to do, and the record kept of it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from cbench_server.results import Failure, Summary

Options = dict[str, Any]


@dataclass(frozen=True)
class ModelRef:
    """A model behind an OpenAI-compatible endpoint."""

    base_url: str
    model: str = ""
    credential: str = ""
    options: Options = field(default_factory=dict)
    system_prompt: str = ""


@dataclass(frozen=True)
class TlsRef:
    """How to secure a connection to a system."""

    ca_pem: str = ""
    server_name: str = ""


@dataclass(frozen=True)
class SystemRef:
    """Where to find a system: exactly one of the four locations is set."""

    name: str = ""
    target: str = ""
    attached: str = ""
    builtin: str = ""
    proxy: ModelRef | None = None
    served_name: str = ""
    options: Options = field(default_factory=dict)
    tls: TlsRef | None = None
    credential: str = ""
    log: str = ""
    """Where the client that launched it keeps what it prints."""


@dataclass(frozen=True)
class EvaluatorRef:
    """Where to find an evaluator: registered here unless a location is set."""

    name: str
    target: str = ""
    attached: str = ""
    options: Options = field(default_factory=dict)


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

    @property
    def completed_rows(self) -> int:
        """Rows done, failed ones included."""
        return sum(system.completed for system in self.progress.values())

    @property
    def failed_rows(self) -> int:
        """Rows that ended in a failure."""
        return sum(system.failed for system in self.progress.values())
