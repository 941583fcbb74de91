"""The context of a row: whether what a system returned tells what it left of it."""

from cbench_server.results import EvalRow
from cbench_server.types import Example


def tells_context(processed: Example, original: Example, *, is_read: bool) -> bool:
    """Whether what a system returned tells what it left of the context.

    One that answers by itself and returns the context as it was says nothing of what it read.
    `is_read` says that the response is the reader's.
    """
    context = processed.get("context")
    if not isinstance(context, str):
        return False
    return is_read or processed.get("response") is None or context != original.get("context")


def row_tells_context(row: EvalRow, original: Example) -> bool:
    """Whether a row that was stored tells it; what a memory system returns is what it recalled."""
    if "conversation_id" in row.metadata:
        return True
    return tells_context(row.processed or {}, original, is_read=row.reader_usage is not None)


def forget_untold(row: EvalRow, example: Example) -> None:
    """Take away token counts that a version before this rule gave a row."""
    if not row_tells_context(row, example):
        row.context_tokens_in = row.context_tokens_out = None
