"""Rows as JUnit XML: a row below the threshold is a failure, one that failed an error."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from xml.sax.saxutils import quoteattr

from cbench_server.results import EvalRow

# What XML 1.0 has no way to write, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MESSAGE_CHARACTERS = 2000


def to_junit(read: Callable[[], Iterable[EvalRow]], threshold: float) -> Iterator[str]:
    """Render one suite a system and dataset, read twice: a suite begins with its counts."""
    counts: Counter[tuple[str, str, str]] = Counter(
        (row.system, row.dataset, outcome(row, threshold)) for row in read()
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="cbench">\n'
    suite: tuple[str, str] | None = None
    for row in read():
        if (row.system, row.dataset) != suite:
            if suite is not None:
                yield "  </testsuite>\n"
            suite = (row.system, row.dataset)
            yield _suite(*suite, counts)
        yield _case(row, threshold)
    if suite is not None:
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def outcome(row: EvalRow, threshold: float) -> str:
    """Return `error`, `skipped`, `failure` or `passed`."""
    if row.failure is not None:
        return "error"
    if row.score is None:
        return "skipped"
    return "passed" if row.score >= threshold else "failure"


def _suite(system: str, dataset: str, counts: Counter[tuple[str, str, str]]) -> str:
    by_outcome = {
        name: counts[system, dataset, name] for name in ("failure", "error", "skipped", "passed")
    }
    return (
        f"  <testsuite name={_quoted(f'{system} on {dataset}')}"
        f' tests="{sum(by_outcome.values())}" failures="{by_outcome["failure"]}"'
        f' errors="{by_outcome["error"]}" skipped="{by_outcome["skipped"]}">\n'
    )


def _case(row: EvalRow, threshold: float) -> str:
    name = str(row.example_id) + (f" #{row.repeat + 1}" if row.repeat else "")
    opening = (
        f"    <testcase classname={_quoted(f'{row.system}.{row.dataset}')} name={_quoted(name)}"
        f' time="{row.latency:.6f}"'
    )
    verdict = outcome(row, threshold)
    if verdict == "passed":
        return f"{opening}/>\n"
    kind, message = "", "the row has no score"
    if row.failure is not None:
        kind = f" type={_quoted(row.failure.reason)}"
        message = row.failure.message
    elif row.score is not None:
        kind = f" type={_quoted(row.primary_score)}"
        message = f"{row.primary_score} {row.score:.4g} is below {threshold:g}"
    return f"{opening}>\n      <{verdict}{kind} message={_quoted(message)}/>\n    </testcase>\n"


def _quoted(text: str) -> str:
    clean = _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text[:_MESSAGE_CHARACTERS])
    return quoteattr(clean)
