"""Padding: responses so long that a score which only looks for the answer in them says little.

Such scores are won by saying everything: the whole context, or every name in it.
"""

from cbench_server.results import PADDED
from cbench_server.spec import RunNote
from cbench_server.texts.answers import references
from cbench_server.types import Example

CONTAINMENT = frozenset({"contains", "recall", "subspan_em", "string_match"})
"""Scores that a response cannot lose by saying more."""
# A sentence or two around the answer are no padding.
_SENTENCE = 100


def padding_marks(original: Example, processed: Example) -> tuple[str, ...]:
    """Mark a response that repeats the context, or is far longer than what was asked for."""
    response, context = processed.get("response"), original.get("context")
    if not isinstance(response, str):
        return ()
    wanted = sum(len(str(each)) for each in references(original))
    half = len(response)
    if isinstance(context, str):
        half = len(context) // 2
        said = context.strip()
        if len(said) > 2 * wanted and said in response:
            return (PADDED,)
    most = min(3 * _SENTENCE + 10 * wanted, max(_SENTENCE + 2 * wanted, half))
    return (PADDED,) if len(response) > most else ()


def padding_note(system: str, count: int, rows: int) -> RunNote | None:
    """Say so where the score of a system stands on such responses."""
    if not count:
        return None
    text = (
        f"{system}: {count:,} of {rows:,} responses are far longer than an answer. The score only "
        "looks for the answer in them, so saying everything pays."
    )
    return RunNote(PADDED, text, system)
