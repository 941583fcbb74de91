"""Results of a run: rows, and an object that collects them."""

import html
import importlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from typing import Any, Literal

import msgspec

from cbench_server.errors import storable

Summary = dict[str, dict[str, float | None]]

PROMPT_OVER_WINDOW = "PROMPT_OVER_WINDOW"
"""Mark: prompt and answer together do not fit the model's window, by our count."""
PROMPT_CUT = "PROMPT_CUT"
"""Mark: the endpoint read less than it was sent, or refused the prompt as too long."""
JUDGE_PROMPT_CUT = "JUDGE_PROMPT_CUT"
"""Mark: the same of a model that an evaluator asked, such as a judge."""
ANSWER_CUT = "ANSWER_CUT"
"""Mark: the answer ended at the limit of its tokens."""
COST_UNKNOWN = "COST_UNKNOWN"
"""Mark: a model with a price was asked, and did not say what it used."""
RETRIED_ALONE = "RETRIED_ALONE"
"""Marks a row whose call met its deadline with others in flight and was made again alone."""
INGESTED_ALONE = "INGESTED_ALONE"
"""Marks a row whose conversation was put into a memory while nothing else was called."""

PADDED = "PADDED"
"""Mark: the response is far longer than the answer that the score looks for in it."""
OVER_BUDGET = "OVER_BUDGET"
"""Mark: a memory handed over more than it was allowed for one question."""
RETRIEVAL_POINTERS = "RETRIEVAL_POINTERS"
"""Mark: the context says that more of it can be had elsewhere, which nobody does here."""
ANCHOR = "ANCHOR"
"""Mark: the row is an anchor's, by which others are understood; it is never compared as theirs."""
STUFFED = "STUFFED"
"""Mark: the context is a list of names and numbers, where the original is running text."""
TOO_LARGE_TO_SEND = "TOO_LARGE_TO_SEND"
"""Mark, on its way to a client only: what makes the row too large for a message was left out."""
RETENTION = "answer_retained"
"""The score that counts for a system which never returns a response, only contexts."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a row, or one evaluator on it, has no scores."""

    origin: str
    """Who is responsible: system, reader, transport, evaluator, dataset or daemon."""
    reason: str
    """A stable UPPER_SNAKE_CASE identifier."""
    message: str
    attempts: int = 0
    retryable: bool = False
    stack_trace: str = ""
    field: str = ""
    """Of a run: what of its spec is to blame, such as `spec.datasets[1]`; else empty."""

    def __post_init__(self) -> None:
        # Both quote what others said, which a row or a run must not be lost for.
        object.__setattr__(self, "message", storable(self.message))
        object.__setattr__(self, "stack_trace", storable(self.stack_trace))


# A Struct is made and encoded in a third of a dataclass's time.
class EvalRow(msgspec.Struct, omit_defaults=True):
    """One (system, example, repeat), scored or failed. Times are in seconds."""

    system: str
    example_id: str | int
    scores: dict[str, float]
    input_tokens: int
    output_tokens: int
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    latency: float = 0.0
    dataset: str = ""
    index: int = 0
    """Position in its dataset."""
    ordinal: int = 0
    """Position in the run: its datasets one after another."""
    repeat: int = 0
    failure: Failure | None = None
    primary_score: str = ""
    """The score that the dataset counts on this example, whichever system it is."""
    context_tokens_in: int | None = None
    context_tokens_out: int | None = None
    usage: dict[str, Any] | None = None
    attempts: int = 1
    queue_time: float = 0.0
    scoring_time: float = 0.0
    reader_time: float = 0.0
    reader_usage: dict[str, Any] | None = None
    reused: bool = False
    group: str = ""
    details: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """What each evaluator had to say beyond its scores."""
    evaluator_failures: dict[str, Failure] = msgspec.field(default_factory=dict)
    processed: dict[str, Any] | None = None
    """What the system returned; None where it was not asked for or the row failed."""
    ingest_time: float = 0.0
    """Of the conversation a memory system was asked about; the same on all its rows."""
    stored_bytes: int | None = None
    """What the conversation occupies in a memory system that says so."""
    carried: tuple[str, ...] = ()
    """Fields of `processed` that are the original's own, which a store need not keep twice."""
    context_only: bool = False
    """Whether the system returned a context and no response."""
    not_applicable: tuple[str, ...] = ()
    """Scores that this example cannot have, whichever system it is."""
    handler_seconds: float | None = None
    """What the system's handler took, where its SDK says so; `latency` is by our own clock."""
    calls_in_flight: int = 0
    """Calls of this system when this one was sent, itself included; 0 means unknown."""
    alone: bool = False
    """Whether it was timed while no other call of the run was in flight."""
    finish_reason: str = ""
    """Why the model stopped, in its server's words."""
    marks: tuple[str, ...] = ()
    """What a reader of the row should know, as UPPER_SNAKE_CASE codes."""
    cost_usd: dict[str, float] = msgspec.field(default_factory=dict)
    """By who charged it: system, reader, or an evaluator's name."""
    groups: dict[str, str] = msgspec.field(default_factory=dict)
    """Fields of the example to summarise by, such as its subject."""
    traceparent: str = ""
    """The trace context of the call that made it; empty if nobody traced it."""
    replica: str = ""
    """Which of the system's replicas was asked last; empty for a system that has none."""

    @property
    def call_seconds(self) -> float | None:
        """What its call took; None where nothing was called, as for predictions and controls."""
        return self.latency or None

    @property
    def was_read(self) -> bool:
        """Whether the response is a reader's."""
        return self.failure is None and (self.reader_time > 0 or self.reader_usage is not None)

    @property
    def has_retention_only(self) -> bool:
        """Whether there is a context, no response, and not the score that counts either."""
        return self.context_only and self.primary_score not in self.scores

    @property
    def score_name(self) -> str:
        """The score that counts for this row, taken by itself."""
        return RETENTION if self.has_retention_only else self.primary_score

    @property
    def score(self) -> float | None:
        """The score that counts for this row, if it has it.

        In the summary of a system that returned a response on any row, a row
        without one counts as the worst value instead.
        """
        name = self.score_name
        return None if name in self.not_applicable else self.scores.get(name)

    @property
    def total_cost_usd(self) -> float | None:
        """What all models charged for it together; None if that is not known, or not in full."""
        if COST_UNKNOWN in self.marks:
            return None
        if self.cost_usd:
            return math.fsum(self.cost_usd.values())
        said = (self.usage or {}).get("cost_usd")
        return float(said) if isinstance(said, int | float) else None

    def reported_tokens(self, name: str) -> int | None:
        """Return the tokens that system and reader report together, such as `prompt_tokens`."""
        counts = [(usage or {}).get(name) for usage in (self.usage, self.reader_usage)]
        known = [count for count in counts if isinstance(count, int)]
        return sum(known) if known else None


def _as_dataclass(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Describe a Struct as `asdict`, `fields` and `replace` of dataclasses want it."""
    described: list[Any] = []
    for each in msgspec.structs.fields(struct):
        if each.default_factory is not msgspec.NODEFAULT:
            described.append((each.name, each.type, field(default_factory=each.default_factory)))
        elif each.default is not msgspec.NODEFAULT:
            described.append((each.name, each.type, field(default=each.default)))
        else:
            described.append((each.name, each.type))
    twin: Any = make_dataclass("_Twin", described)
    return dict(twin.__dataclass_fields__)


EvalRow.__dataclass_fields__ = _as_dataclass(EvalRow)


@dataclass(frozen=True)
class EvalResult:
    """The rows of a run and what the metrics make of them."""

    rows: list[EvalRow]
    summary: Summary
    timing: dict[str, float] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    summarize: Callable[[Sequence[EvalRow]], Summary] | None = field(
        default=None, repr=False, compare=False
    )
    """Computes the summary of a part; without it `filter` leaves the summary empty."""
    describe: Callable[[Sequence[EvalRow]], dict[str, Any]] | None = field(
        default=None, repr=False, compare=False
    )
    """Records how a part was made; without it `filter` leaves the config as it is."""
    comparer: Callable[[Sequence[EvalRow], str, str, str | None], Any] | None = field(
        default=None, repr=False, compare=False
    )
    """Compares two systems; without it there is no `compare`."""

    def filter(self, **attributes: Any) -> "EvalResult":
        """Keep the rows whose attributes equal all the values; summary and config are theirs."""
        rows = [
            row
            for row in self.rows
            if all(getattr(row, name, None) == value for name, value in attributes.items())
        ]
        present = {row.system for row in rows}
        timing = {name: seconds for name, seconds in self.timing.items() if name in present}
        summary = self.summarize(rows) if self.summarize else {}
        config = self.describe(rows) if self.describe else self.config
        config = {**config, "filter": {**self.config.get("filter", {}), **attributes}}
        return replace(self, rows=rows, summary=summary, timing=timing, config=config)

    def compare(self, a: str, b: str, score_field: str | None = None) -> Any:
        """Say whether system `a` is better than `b`, by how much and at what cost.

        Gives a `cbench_server.comparison.PairedDifference`, with `sentence`,
        `difference`, `p` and more. Scores are the primary ones unless
        `score_field` names another.
        """
        if self.comparer is None:
            raise ValueError(
                "this result cannot compare, for it does not come from evaluate(). "
                "Call cbench_server.comparison.compare_two(result.rows, a, b) instead."
            )
        return self.comparer(self.rows, a, b, score_field)

    def to_json(self) -> str:
        """Render as strict JSON: an infinite or undefined number is null."""
        document = {
            "rows": [row_to_dict(row) for row in self.rows],
            "summary": self.summary,
            "timing": self.timing,
            "config": self.config,
        }
        return strict_json(document)

    def to_dataframe(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """Flatten into a DataFrame: one line a row, scores and metadata as columns.

        Without a `library` it is one of pandas, or of polars where there is
        no pandas.
        """
        for name in (library,) if library else ("pandas", "polars"):
            try:
                return importlib.import_module(name).DataFrame(self._lines())
            except ImportError:
                continue
        wanted = library or "pandas or polars"
        package: str = library or "pandas"
        if package in ("pandas", "polars"):
            package = f'"cbench-server[{package}]"'
        raise ImportError(f"to_dataframe needs {wanted}: pip install {package}")

    def _lines(self) -> list[dict[str, Any]]:
        """Give every row all columns, since not every library fills up what is missing."""
        lines = []
        for row in self.rows:
            line: dict[str, Any] = {name: getattr(row, name) for name in _COLUMNS}
            line |= row.scores | row.metadata
            if row.total_cost_usd is not None:
                line["cost_usd"] = row.total_cost_usd
            if row.failure:
                line["failure"] = row.failure.reason
            lines.append(line)
        names = dict.fromkeys(name for line in lines for name in line)
        return [{name: line.get(name) for name in names} for line in lines]

    def _repr_html_(self) -> str:
        """Show the summary in a notebook: one line a system, with 95 % intervals."""
        keys = dict.fromkeys(key for values in self.summary.values() for key in values)
        shown = [key for key in keys if not key.endswith(("_stderr", "_ci_low", "_ci_high"))]
        lines = [["System", *shown]]
        for system, values in self.summary.items():
            lines.append([system, *(_shown(values, key) for key in shown)])
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
            for line in lines
        )
        return f"<table>{rows}</table><p>{len(self.rows):,} rows</p>"


_COLUMNS = ("system", "example_id", "dataset", "input_tokens", "output_tokens", "latency")


def _shown(values: Mapping[str, float | None], key: str) -> str:
    value, low, high = (values.get(key + end) for end in ("", "_ci_low", "_ci_high"))
    text = "—" if value is None else f"{value:.4g}"
    return text if low is None or high is None else f"{text} ({low:.4g} to {high:.4g})"


def row_to_dict(row: EvalRow) -> dict[str, Any]:
    """Give a row as plain data, without what is empty beyond the model's own fields."""
    always = {
        "system",
        "example_id",
        "scores",
        "input_tokens",
        "output_tokens",
        "metadata",
        "latency",
        "dataset",
        "index",
        "repeat",
    }
    plain = asdict(row)
    del plain["carried"]
    return {
        name: value
        for name, value in plain.items()
        if name in always
        or not (value is None or value is False or value in ("", {}, ()) or _idle(value))
    }


def _idle(value: Any) -> bool:
    """Whether a value is a time that was not spent; a count of zero says something."""
    return isinstance(value, float) and value == 0.0


def strict_json(document: Any, indent: int | None = 2) -> str:
    """Dump as JSON that every parser accepts: bytes as hex, infinite or undefined as null."""
    return json.dumps(_json_safe(document), indent=indent, ensure_ascii=False, allow_nan=False)


def _json_safe(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_safe(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, str | int):
        return value
    return str(value)
