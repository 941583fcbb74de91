"""Token overlap between a response and a reference, as the official SQuAD v1.1 script has it."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cbench_server.texts.answers import answer_tokens, normalize_answer

__all__ = [
    "answer_tokens",
    "exact_match",
    "f1_of_overlap",
    "f1_score",
    "normalize_answer",
    "recall_of_tokens",
    "recall_score",
    "shared_tokens",
]


def f1_score(response: str, reference: str) -> float:
    """Return the harmonic mean of token precision and recall; 0.0 if no token is shared."""
    given, wanted = answer_tokens(response), answer_tokens(reference)
    return f1_of_overlap(shared_tokens(Counter(given), wanted), len(given), len(wanted))


def exact_match(response: str, reference: str) -> float:
    """Return 1.0 if both normalise to the same text, else 0.0."""
    return float(answer_tokens(response) == answer_tokens(reference))


def recall_score(response: str, reference: str) -> float:
    """Return the share of the reference's tokens that the response has; 0.0 if it has none."""
    return recall_of_tokens(Counter(answer_tokens(response)), answer_tokens(reference))


def recall_of_tokens(response: Mapping[str, int], reference: Sequence[str]) -> float:
    """Do as `recall_score` does, with the response's tokens counted already."""
    return shared_tokens(response, reference) / len(reference) if reference else 0.0


def shared_tokens(response: Mapping[str, int], reference: Sequence[str]) -> int:
    """Count the tokens both have, each as often as it occurs in both."""
    if len(reference) == 1:  # As most answers have it.
        return int(reference[0] in response)
    return sum(
        min(count, response[token])
        for token, count in Counter(reference).items()
        if token in response
    )


def f1_of_overlap(shared: int, response_length: int, reference_length: int) -> float:
    """Return F1 from token counts, rounding as the official script does."""
    if shared == 0:
        return 0.0
    precision = shared / response_length
    recall = shared / reference_length
    return 2 * precision * recall / (precision + recall)
