"""The nine metrics, and which task has which.

A metric gives the score of a response and one reference; `Classes` are the labels of the row.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from cbench_server.errors import InvalidInput
from cbench_server.evaluators.longbench.chinese import chinese_words, plain_chinese
from cbench_server.evaluators.longbench.code_similarity import code_similarity
from cbench_server.evaluators.longbench.summaries import rouge_l_of_sentences
from cbench_server.metrics.quality import f1_of_overlap, f1_score, shared_tokens

Classes = Sequence[str]
Metric = Callable[[str, str, Classes], float]

_DIGITS = re.compile(r"\d+")
_PARAGRAPH = re.compile(r"Paragraph (\d+)")
_CHINESE_PARAGRAPH = re.compile(r"段落(\d+)")


def _qa_f1(response: str, reference: str, _: Classes) -> float:
    return f1_score(response, reference)


def _qa_f1_chinese(response: str, reference: str, _: Classes) -> float:
    given, wanted = (
        [token for word in chinese_words(text) if (token := plain_chinese(word))]
        for text in (response, reference)
    )
    return f1_of_overlap(shared_tokens(Counter(given), wanted), len(given), len(wanted))


def _rouge(response: str, reference: str, _: Classes) -> float:
    return rouge_l_of_sentences(response, reference)


def _rouge_chinese(response: str, reference: str, _: Classes) -> float:
    given, wanted = (" ".join(chinese_words(text)) for text in (response, reference))
    return rouge_l_of_sentences(given, wanted)


def _classification(response: str, reference: str, classes: Classes) -> float:
    named = [each for each in classes if each in response]
    # The official loop removes from the list it walks along, and so skips the label after one
    # that it removed.
    for label in named:
        if label in reference and label != reference:
            named.remove(label)
    return 1.0 / len(named) if reference in named else 0.0


def _retrieval(response: str, reference: str, _: Classes) -> float:
    return _share_of_numbers(response, _number_in(reference, _PARAGRAPH))


def _retrieval_chinese(response: str, reference: str, _: Classes) -> float:
    return _share_of_numbers(response, _number_in(reference, _CHINESE_PARAGRAPH))


def _count(response: str, reference: str, _: Classes) -> float:
    return _share_of_numbers(response, reference)


def _code_similarity(response: str, reference: str, _: Classes) -> float:
    return code_similarity(response, reference)


def _share_of_numbers(response: str, wanted: str) -> float:
    numbers = _DIGITS.findall(response)
    return numbers.count(wanted) / len(numbers) if numbers else 0.0


def _number_in(reference: str, pattern: re.Pattern[str]) -> str:
    found = pattern.search(reference)
    if found is None:
        raise InvalidInput(
            f'LongBench reference "{reference[:100]}" does not name a paragraph; '
            f'it should have the form "{pattern.pattern}"'
        )
    return found[1]


METRICS: dict[str, Metric] = {
    "narrativeqa": _qa_f1,
    "qasper": _qa_f1,
    "multifieldqa_en": _qa_f1,
    "multifieldqa_zh": _qa_f1_chinese,
    "hotpotqa": _qa_f1,
    "2wikimqa": _qa_f1,
    "musique": _qa_f1,
    "dureader": _rouge_chinese,
    "gov_report": _rouge,
    "qmsum": _rouge,
    "multi_news": _rouge,
    "vcsum": _rouge_chinese,
    "trec": _classification,
    "triviaqa": _qa_f1,
    "samsum": _rouge,
    "lsht": _classification,
    "passage_retrieval_en": _retrieval,
    "passage_count": _count,
    "passage_retrieval_zh": _retrieval_chinese,
    "lcc": _code_similarity,
    "repobench-p": _code_similarity,
}
FIRST_LINE_TASKS = frozenset({"trec", "triviaqa", "samsum", "lsht"})
"""Few-shot tasks, where a response may go on with further shots."""
CLASS_TASKS = frozenset(task for task, metric in METRICS.items() if metric is _classification)
JIEBA_TASKS = frozenset(
    task for task, metric in METRICS.items() if metric in (_qa_f1_chinese, _rouge_chinese)
)
QUICK_TASKS = frozenset(
    task
    for task, metric in METRICS.items()
    if metric in (_qa_f1, _classification, _retrieval, _retrieval_chinese, _count)
)
"""Tasks whose metric takes time in proportion to the text."""
