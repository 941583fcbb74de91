"""Evidence recall: which share of what holds the answer survives in the context a system left?"""

from collections.abc import Sequence

from cbench_server.evaluators.inputs import ScoreInfo
from cbench_server.texts.presence import Phrase, SearchedText, passage_of
from cbench_server.texts.verbatim import picked_share, verbatim_share
from cbench_server.types import Assessment, Example, Placement, Scores

_RANKS = (1, 5, 10)
_SHOWN = 5
_LABELS = ("role", "speaker", "time", "session")


class EvidenceRecall:
    """Gives `evidence_recall` and `evidence_complete` where a system returns a context.

    The evidence is the original's: sentences, paragraphs, turns or needles. It
    is found word for word or not at all, so a system that rewrites its text
    scores low whatever it kept of the meaning: `context_verbatim` tells those
    systems apart. Where a system returns the passages it `retrieved`, the best
    first, recall at 1, 5 and 10 is given as well.
    """

    name = "evidence-recall"
    # 4: a run has it of what tells what became of the context, and of nothing else.
    version = "4"
    description = "Share of the evidence that is in the returned context; verbatim only."
    placement: Placement = "inline"
    # Words of numbers and letters, none of them twice, take most: 30 ms up to here.
    inline_limit = 16_000
    reads = "context"
    required_fields = ("evidence",)
    score_infos = (
        ScoreInfo("evidence_recall", "Share of the evidence in the context; verbatim only."),
        ScoreInfo("evidence_complete", "1.0 if all of it is there; verbatim only."),
        *(
            ScoreInfo(
                f"evidence_recall_at_{rank}", f"Share in the first {rank} passages retrieved."
            )
            for rank in _RANKS
        ),
        ScoreInfo(
            "context_verbatim", "Share of the context that is the original's, word for word."
        ),
    )

    def applies(self, original: Example) -> bool:
        """Whether there is evidence, which a question without an answer has not."""
        return not original.get("is_abstention") and bool(_evidence(original))

    def score(self, original: Example, processed: Example) -> Scores:
        return self.assess(original, processed).scores

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair; the details name what is missing."""
        wanted = [] if original.get("is_abstention") else _evidence(original)
        retrieved = processed.get("retrieved")
        context = processed.get("context")
        is_ranked = isinstance(retrieved, list | tuple)
        if not wanted or (context is None and not is_ranked):
            return Assessment({})
        ranked = _texts(retrieved) if is_ranked else []
        left = "\n\n".join(ranked) if context is None else str(context)
        found = _found(left, wanted)
        scores = {
            "evidence_recall": sum(found) / len(found),
            "evidence_complete": float(all(found)),
        }
        if is_ranked:
            for rank in _RANKS:
                among = _found("\n\n".join(ranked[:rank]), wanted)
                scores[f"evidence_recall_at_{rank}"] = sum(among) / len(among)
        if (share := _verbatim(original, left)) is not None:
            scores["context_verbatim"] = share
        missing = [text for (text, _), is_there in zip(wanted, found, strict=True) if not is_there]
        return Assessment(scores, {"missing": missing[:_SHOWN]} if missing else {})


def _evidence(original: Example) -> list[tuple[str, Phrase]]:
    """Return each piece once, with what is looked for."""
    pairs = [(text, passage_of(text)) for text in _texts(original.get("evidence"))]
    return [(text[:200], phrase) for text, phrase in dict(pairs).items() if phrase is not None]


def _verbatim(original: Example, left: str) -> float | None:
    """Return how much of what is left is the original's; None where that is not at hand.

    In a memory run only the first question of a conversation has it.
    """
    turns = original.get("turns")
    if isinstance(turns, list):
        said = "\n".join(str(turn.get("content", "")) for turn in turns)
        labels = " ".join(f"{name} {turn.get(name, '')}" for turn in turns for name in _LABELS)
        return picked_share(said, left, labels)
    context = original.get("context")
    if not isinstance(context, str) or "turn_count" in original:
        return None
    return verbatim_share(context, left)


def _texts(value: object) -> list[str]:
    given = value if isinstance(value, list | tuple) else [value]
    return [str(each) for each in given if each is not None]


def _found(context: str, wanted: Sequence[tuple[str, Phrase]]) -> list[bool]:
    text = SearchedText(context)
    return [text.contains(phrase) for _, phrase in wanted]
