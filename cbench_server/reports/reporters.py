"""Results of `evaluate()` in any registered format."""

from collections.abc import Sequence

from cbench_server.registry import registry
from cbench_server.reports.report import Original, report_of
from cbench_server.results import EvalResult


def render(
    result: EvalResult, name: str = "html", *, examples: Sequence[Original] = ()
) -> str | bytes:
    """Write the result of `evaluate()` in a registered format, as bytes if the format is binary.

    With the `examples` that were evaluated, a page shows each one next to the answers.
    """
    parts = list(registry.get("reporter", name)(report_of(result, examples)))
    if any(isinstance(part, bytes) for part in parts):
        return b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return "".join(parts)
