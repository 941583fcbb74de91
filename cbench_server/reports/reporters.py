"""Reporters by name: a result of `evaluate()` in any registered format."""

from collections.abc import Sequence

from cbench_server.registry import registry
from cbench_server.reports.formats import REPORTERS, SUFFIXES, examples_of
from cbench_server.reports.report import Original, report_of
from cbench_server.results import EvalResult

__all__ = ["REPORTERS", "SUFFIXES", "examples_of", "render"]


def render(
    result: EvalResult, name: str = "html", *, examples: Sequence[Original] = ()
) -> str | bytes:
    """Write the result of `evaluate()` in a registered format, as text unless it is not.

    With the `examples` it was given, a page shows them beside what became of them.
    """
    parts = list(registry.get("reporter", name)(report_of(result, examples)))
    if any(isinstance(part, bytes) for part in parts):
        return b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return "".join(parts)
