"""Words of Chinese text, by jieba, the only tokenizer LongBench's Chinese scores are defined by."""

import importlib.util
import logging
import string
from collections.abc import Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

from cbench_server.errors import InvalidInput

# What LongBench leaves out of Chinese answers, besides ASCII punctuation and white space.
_PUNCTUATION = (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—"
    "‘’‛“”„‟…‧﹏"
)
_DELETED = str.maketrans("", "", string.punctuation + _PUNCTUATION)
_IMPOSSIBLE = -3.14e100
_BEFORE = {"B": "ES", "M": "MB", "S": "SE", "E": "BM"}
_loading = Lock()


def require_jieba(task: str) -> None:
    """Raise InvalidInput, with the way out, if jieba is not installed."""
    if importlib.util.find_spec("jieba") is None:
        raise InvalidInput(
            f'LongBench task "{task}" is scored by the words of jieba, which is not installed. '
            'Install it with: pip install "cbench-server[chinese]"'
        )


def chinese_words(text: str) -> list[str]:
    """Return the words of a text, as jieba cuts them."""
    return [*_tokenizer().cut(text, cut_all=False)]


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
        best = {
            state: max(
                (
                    row[before]
                    + transitions[before].get(state, _IMPOSSIBLE)
                    + emissions[state].get(character, _IMPOSSIBLE),
                    before,
                )
                for before in _BEFORE[state]
            )
            for state in states
        }
        row = {state: probability for state, (probability, _) in best.items()}
        came_from.append({state: before for state, (_, before) in best.items()})
    probability, last = max((row[state], state) for state in "ES")
    path = [last]
    for step in reversed(came_from):
        path.append(step[path[-1]])
    return probability, path[::-1]
