"""SCROLLS: an archive of JSON lines for each task, the query before the text."""

from cbench_server.datasets.hub.sources import Part
from cbench_server.datasets.protocol import differs

VALIDATION = differs(
    "The usual split is validation; published figures are of test, whose outputs are hidden."
)


def scrolls_part(task: str) -> Part:
    """Return the validation rows of a task; the test rows have no outputs."""
    return Part(
        repository="tau/scrolls",
        config=task,
        split="validation",
        url=f"zip://{task}/{{split}}.jsonl::{task}.zip",
    )


def split_query(text: str) -> tuple[str, str]:
    """Return the query, which ends at the first blank line, and the text after it.

    Without a blank line all of it is text.
    """
    query, blank, rest = text.partition("\n\n")
    return (query.strip(), rest.strip()) if blank else ("", text.strip())
