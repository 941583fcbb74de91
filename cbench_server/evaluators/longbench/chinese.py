"""Words of Chinese text, by jieba, the only tokenizer LongBench's Chinese scores are defined by."""

import logging
import string
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from threading import Lock
from typing import Any

from cbench_server.lazy_imports import require

# What LongBench leaves out of Chinese answers, besides ASCII punctuation and white space.
_PUNCTUATION = (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—"
    "‘’‛“”„‟…‧﹏"
)
_DELETED = str.maketrans("", "", string.punctuation + _PUNCTUATION)
_IMPOSSIBLE = -3.14e100
# The states that may come before each; the first one if both are as probable.
_BEFORE = {"B": ("S", "E"), "M": ("M", "B"), "S": ("S", "E"), "E": ("M", "B")}
_loading = Lock()


def require_jieba(task: str) -> None:
    """Raise InvalidInput, with the way out, if jieba is not installed."""
    require("jieba", f'LongBench task "{task}" is scored by the words of')


@lru_cache(maxsize=8)  # A response is compared with several references.
def chinese_words(text: str) -> tuple[str, ...]:
    """Return the words of a text, as jieba cuts them."""
    return tuple(_tokenizer().cut(text, cut_all=False))


def plain_chinese(text: str) -> str:
    """Lowercase, and remove punctuation and white space."""
    return "".join(text.lower().translate(_DELETED).split())


def _tokenizer() -> Any:
    with _loading:
        return _loaded_tokenizer()


@cache
def _loaded_tokenizer() -> Any:
    import jieba
    import jieba.finalseg

    jieba.setLogLevel(logging.WARNING)
    jieba.finalseg.viterbi = best_states
    tokenizer = jieba.Tokenizer()
    # Its own way to begin reads a file that anybody may have put into the temporary folder.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


def best_states(
    observed: str,
    states: str,
    start: Mapping[str, float],
    transitions: Mapping[str, Mapping[str, float]],
    emissions: Mapping[str, Mapping[str, float]],
) -> tuple[float, Sequence[str]]:
    """Return the most probable states of a text, as jieba's function of five does.

    jieba's own copies the whole path at each character: a text of 100,000
    without a known word takes it minutes.
    """
    row = {each: start[each] + emissions[each].get(observed[0], _IMPOSSIBLE) for each in states}
    came_from: list[dict[str, str]] = []
    for character in observed[1:]:
        following: dict[str, float] = {}
        origins: dict[str, str] = {}
        for state in states:
            one, other = _BEFORE[state]
            emitted = emissions[state].get(character, _IMPOSSIBLE)
            by_one = row[one] + transitions[one].get(state, _IMPOSSIBLE) + emitted
            by_other = row[other] + transitions[other].get(state, _IMPOSSIBLE) + emitted
            is_one = by_one >= by_other
            following[state] = by_one if is_one else by_other
            origins[state] = one if is_one else other
        row = following
        came_from.append(origins)
    probability, last = max((row[state], state) for state in "ES")
    path = [last]
    for origins in reversed(came_from):
        path.append(origins[path[-1]])
    return probability, path[::-1]
