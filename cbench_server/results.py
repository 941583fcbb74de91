"""What a run gives: rows, and a result that collects them."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

Summary = dict[str, dict[str, float | None]]


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


# Not frozen: setting 27 fields past a frozen class's guard took a tenth of a row's time.
@dataclass(slots=True)
class EvalRow:
    """One (system, example, repeat), scored or failed. Times are in seconds."""

    system: str
    example_id: str | int
    scores: dict[str, float]
    input_tokens: int
    output_tokens: int
    metadata: dict[str, Any] = field(default_factory=dict)
    latency: float = 0.0
    dataset: str = ""
    index: int = 0
    """Position in its dataset."""
    ordinal: int = 0
    """Position in the run: its datasets one after another."""
    repeat: int = 0
    failure: Failure | None = None
    primary_score: str = ""
    """The name of the score that counts for this row."""
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
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each evaluator had to say beyond its scores."""
    evaluator_failures: dict[str, Failure] = field(default_factory=dict)
    processed: dict[str, Any] | None = None
    """What the system returned; None where it was not asked for or the row failed."""
    carried: tuple[str, ...] = ()
    """Fields of `processed` that are the original's own, which a store need not keep twice."""

    @property
    def score(self) -> float | None:
        """The primary score, if the row has it."""
        return self.scores.get(self.primary_score)


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

    def filter(self, **attributes: Any) -> "EvalResult":
        """Keep the rows whose attributes equal all the values; the summary is theirs."""
        rows = [
            row
            for row in self.rows
            if all(getattr(row, name, None) == value for name, value in attributes.items())
        ]
        present = {row.system for row in rows}
        timing = {name: seconds for name, seconds in self.timing.items() if name in present}
        summary = self.summarize(rows) if self.summarize else {}
        return replace(self, rows=rows, summary=summary, timing=timing)

    def to_json(self) -> str:
        """Render as strict JSON: an infinite or undefined number is null."""
        document = {
            "rows": [row_to_dict(row) for row in self.rows],
            "summary": self.summary,
            "timing": self.timing,
            "config": self.config,
        }
        return strict_json(document)

    def to_dataframe(self) -> "pandas.DataFrame":
        """Flatten into a pandas DataFrame: one line a row, scores and metadata as columns."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_dataframe needs pandas: pip install pandas") from error
        lines = []
        for row in self.rows:
            line: dict[str, Any] = {
                name: getattr(row, name)
                for name in (
                    "system",
                    "example_id",
                    "dataset",
                    "input_tokens",
                    "output_tokens",
                    "latency",
                )
            }
            line.update(row.scores)
            line.update(row.metadata)
            if row.failure:
                line["failure"] = row.failure.reason
            lines.append(line)
        return pandas.DataFrame(lines)


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
        or not (value is None or value is False or value in ("", {}) or _idle(value))
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
