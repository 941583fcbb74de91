"""Context tokens of a row: whether what a system returned tells how many it left."""

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


def forget_untold(row: EvalRow, example: Example) -> None:
    """Take away token counts that a version before this rule gave a row."""
    is_read = row.reader_usage is not None
    is_process = "conversation_id" not in row.metadata
    if is_process and not tells_context(row.processed or {}, example, is_read=is_read):
        row.context_tokens_in = row.context_tokens_out = None
