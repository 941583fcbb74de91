"""What else differs between two runs that are compared."""

from collections.abc import Iterator
from typing import Any

from cbench_server.spec import Run

_DATA = ("upload", "split", "revision", "files")


def run_differences(a: Run, b: Run) -> Iterator[str]:
    """Yield a note for everything but the systems that may explain a difference."""
    ours, theirs = _datasets(a), _datasets(b)
    for label in [label for label in ours if label in theirs]:
        one, other = ours[label], theirs[label]
        if any(one.get(name) != other.get(name) for name in _DATA):
            # The digest of an upload is that of the part which -n left.
            is_cut = one.get("upload") and one.get("max_examples") != other.get("max_examples")
            what = "different data, or parts of the same" if is_cut else "different data"
            yield f"{label} was read from {what}: the same id may name another example."
        if one.get("evaluators") != other.get("evaluators"):
            yield f"{label} was scored by different evaluators, versions or settings."
    if _corrections(a) != _corrections(b):
        yield "The runs were scored by different references: one of them with corrected ones."
    if a.spec.reader != b.spec.reader:
        yield "The runs had different readers."
    if a.config.get("tokenizer") != b.config.get("tokenizer"):
        yield "The runs counted tokens differently."


def _corrections(run: Run) -> list[str]:
    """Return the files of references that a run, or what it was scored anew from, was given."""
    found: list[str] = []
    rescoring: dict[str, Any] = run.config.get("rescoring", {})
    while rescoring:
        found.append(rescoring["references_upload"])
        rescoring = rescoring.get("earlier", {})
    return [each for each in found if each]


def _datasets(run: Run) -> dict[str, dict[str, Any]]:
    return {str(each.get("label")): each for each in run.config.get("datasets", [])}
