"""JUnit XML, which CI servers show as tests: a suite, its cases and their outcomes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

Outcome = Literal["passed", "failure", "error", "skipped"]

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
# What XML 1.0 has no way to write, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAX_CHARACTERS = 2000


@dataclass(frozen=True)
class Case:
    """One test case; `message` and `kind` say why it did not pass, `text` is shown with it."""

    classname: str
    name: str
    outcome: Outcome = "passed"
    message: str = ""
    kind: str = ""
    text: str = ""
    seconds: float | None = None


def document(name: str, cases: Sequence[Case], *, seconds: float | None = None) -> str:
    """Write a document with one suite."""
    counts = Counter(case.outcome for case in cases)
    return DECLARATION + "".join(suite(name, counts, cases, seconds=seconds))


def suite(
    name: str,
    counts: Mapping[Outcome, int],
    cases: Iterable[Case],
    *,
    seconds: float | None = None,
) -> Iterator[str]:
    """Write a suite, which begins with its counts."""
    attributes = _attributes(
        name=name,
        tests=str(sum(counts.values())),
        failures=str(counts.get("failure", 0)),
        errors=str(counts.get("error", 0)),
        skipped=str(counts.get("skipped", 0)),
        time=_time(seconds),
    )
    yield f"<testsuite{attributes}>\n"
    for case in cases:
        yield _case(case)
    yield "</testsuite>\n"


def _case(case: Case) -> str:
    opening = "  <testcase" + _attributes(
        classname=case.classname, name=case.name, time=_time(case.seconds)
    )
    text = escape(_writable(case.text))
    if case.outcome != "passed":
        kind = _attributes(type=case.kind or None, message=case.message)
        inside = f"<{case.outcome}{kind}>{text}</{case.outcome}>"
    elif text:
        inside = f"<system-out>{text}</system-out>"
    else:
        return f"{opening}/>\n"
    return f"{opening}>\n    {inside}\n  </testcase>\n"


def _attributes(**values: str | None) -> str:
    return "".join(
        f" {name}={quoteattr(_writable(value))}"
        for name, value in values.items()
        if value is not None
    )


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.6f}"


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text[:_MAX_CHARACTERS])
