"""Words that occur most often: RULER's `cwe` and `fwe`."""

from cbench_server.datasets.generated.draws import Draws
from cbench_server.datasets.generated.fitting import fitted
from cbench_server.datasets.generated.made import Made, Wanted
from cbench_server.datasets.generated.words import invented

_COMMON = 10
_LONG = 4_000
_CODED_LETTERS = 6
# The sum of 1/n² over all n, which makes the shares of the words add up to one.
_ZETA_2_MILLIONTHS = 1_644_934


def common_words(wanted: Wanted) -> Made:
    """Number a list in which ten words occur ten times as often as the rest (six in short ones)."""
    often, seldom = (30, 3) if wanted.length >= _LONG else (6, 1)
    words = invented(wanted.draws, _COMMON + wanted.length)
    order_seed = wanted.draws.below(1 << 30)

    def build(count: int) -> str:
        listed = words[:_COMMON] * often + words[_COMMON : _COMMON + count] * seldom
        shuffled = Draws(order_seed).shuffled(listed)
        return " ".join(f"{number}. {word}" for number, word in enumerate(shuffled, 1))

    context = fitted(build, wanted.length)
    question = f"Which {_COMMON} words occur most often in the numbered list?"
    return Made(context, question, words[:_COMMON], words[:_COMMON])


def frequent_words(wanted: Wanted) -> Made:
    """Write coded words: the n-th most frequent one has a share of 1/n², and the first is dots."""
    draws = wanted.draws
    found: dict[str, None] = {}
    while len(found) < max(wanted.length // 50, 20):
        found.setdefault(draws.letters(_CODED_LETTERS))
    words = ["...", *found]
    order_seed = draws.below(1 << 30)

    def build(count: int) -> str:
        listed = [
            word
            for rank, word in enumerate(words, 1)
            for _ in range(count * 1_000_000 // (_ZETA_2_MILLIONTHS * rank * rank))
        ]
        return " ".join(Draws(order_seed).shuffled(listed))

    context = fitted(build, wanted.length, least=60)
    question = "Which three coded words occur most often in the text? The dots are not a word."
    return Made(context, question, words[1:4], words[1:4])
