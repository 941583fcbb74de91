"""ROUGE-L as version 1.0.1 of the `rouge` package computes it, which LongBench asks for.

It differs from rouge-score: sentences end at full stops, words at white space,
and what counts is how many different words the subsequences of all pairs of
sentences have together.
"""

from collections import defaultdict
from collections.abc import Sequence

from cbench_server.evaluators.rouge.subsequences import common_places


def rouge_l_of_sentences(response: str, reference: str) -> float:
    """Return F1 of the different words in longest common subsequences of sentences."""
    given, wanted = _sentences(response), _sentences(reference)
    if not given or not wanted:
        return 0.0
    shared = _shared_words(given, wanted)
    precision = shared / len({word for sentence in given for word in sentence})
    recall = shared / len({word for sentence in wanted for word in sentence})
    # The package adds 1e-8, lest it divide by zero.
    return 2.0 * (precision * recall / (precision + recall + 1e-8))


def _sentences(text: str) -> list[tuple[str, ...]]:
    """Return the different sentences; one of white space alone has the empty word."""
    parts = (part.split() or ("",) for part in text.split(".") if part)
    return [*dict.fromkeys(map(tuple, parts))]


def _shared_words(given: Sequence[tuple[str, ...]], wanted: Sequence[tuple[str, ...]]) -> int:
    having: defaultdict[str, list[int]] = defaultdict(list)
    for number, sentence in enumerate(given):
        for word in set(sentence):
            having[word].append(number)
    found: set[str] = set()
    for sentence in wanted:
        missing = {word for word in sentence if word not in found}
        # Only a sentence that has a missing word can add one.
        for number in sorted({each for word in missing for each in having.get(word, ())}):
            other = given[number]
            if not found.issuperset(missing.intersection(other)):
                found.update([other[place] for place in common_places(sentence, other)])
    return len(found)
