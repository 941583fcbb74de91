"""LongBench: which metric a row gets, and what is refused; the numbers are in the vectors."""

import difflib
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench_server.contract import info_of
from cbench_server.errors import InvalidInput, UnknownName
from cbench_server.evaluators import LongBench
from cbench_server.evaluators.longbench.chinese import chinese_words
from cbench_server.evaluators.longbench.code_similarity import code_similarity
from cbench_server.evaluators.longbench.metrics import METRICS


def longbench(task: str, response: str, *answers: str, **fields: object) -> float:
    original = {"answers": [*answers], "task": task, **fields}
    return LongBench().score(original, {"response": response})["longbench_score"]


def test_every_task_of_longbench_has_a_metric() -> None:
    assert len(METRICS) == 21
    assert len({*METRICS.values()}) == 9


def test_the_constructors_task_goes_before_the_rows() -> None:
    evaluator = LongBench(task="passage_count")
    found = evaluator.score({"task": "hotpotqa", "answer": "7"}, {"response": "7 or 8"})
    assert found == {"longbench_score": 0.5}


def test_a_task_of_longbench_e_is_the_task() -> None:
    assert longbench("passage_count_e", "7 or 8", "7") == 0.5


def test_only_the_first_line_counts_where_shots_may_follow() -> None:
    assert longbench("triviaqa", "\n\nParis\nQuestion: x", "Paris") == 1.0
    assert longbench("hotpotqa", "\n\nParis\nQuestion: x", "Paris") == 0.5


def test_any_paragraph_earns_nothing() -> None:
    assert longbench("passage_retrieval_en", "Paragraph 12", "Paragraph 1") == 0.0


def test_labels_within_the_right_one_are_left_out() -> None:
    labels = {"all_classes": ["Other", "Other location", "Date"]}
    assert longbench("trec", "Other location", "Other location", **labels) == 1.0
    assert longbench("trec", "Date or Other location", "Other location", **labels) == 0.5


@pytest.mark.parametrize(
    ("task", "placement"),
    [
        (None, "worker"),
        ("hotpotqa", "inline"),
        ("trec", "inline"),
        ("gov_report", "worker"),
        ("lcc", "worker"),
        ("dureader", "worker"),
    ],
)
def test_what_may_take_long_has_a_worker(task: str | None, placement: str) -> None:
    assert info_of(LongBench(task=task)).placement == placement


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(UnknownName, match=r'no LongBench task "hotpot"; did you mean "hotpotqa"'):
        LongBench(task="hotpot")
    with pytest.raises(UnknownName):
        longbench("poetry", "x", "x")


def test_the_rows_task_is_required_unless_the_constructor_has_it() -> None:
    assert info_of(LongBench()).required_fields == ("answer", "task")
    assert info_of(LongBench(task="lcc")).required_fields == ("answer",)


def test_a_row_without_what_its_task_needs_is_refused() -> None:
    with pytest.raises(InvalidInput, match="all_classes, not None"):
        longbench("trec", "Date", "Date")
    with pytest.raises(InvalidInput, match='"the first" does not name a paragraph'):
        longbench("passage_retrieval_en", "Paragraph 1", "the first")


def test_chinese_is_refused_without_jieba() -> None:
    program = """if True:
        import sys
        sys.modules["jieba"] = None  # As if it were not installed.
        from cbench_server.errors import InvalidInput
        from cbench_server.evaluators import LongBench
        row = {"task": "dureader", "answer": "北京"}, {"response": "北京"}
        for refused in (lambda: LongBench(task="dureader"), lambda: LongBench().score(*row)):
            try:
                refused()
            except InvalidInput as error:
                print(error)
        english = {"task": "hotpotqa", "answer": "x"}, {"response": "x"}
        print(LongBench().score(*english))
    """
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    refusal = (
        'LongBench task "dureader" is scored by the words of jieba, which is not installed. '
        'Install it with: pip install "cbench-server[chinese]"\n'
    )
    assert ran.stdout == refusal * 2 + "{'longbench_score': 1.0}\n"


@cache
def jieba_apart() -> Any:
    """Return a tokenizer of jieba's from modules loaded apart, so that all of it is its own."""
    kept = {name: sys.modules.pop(name) for name in [*sys.modules] if name.startswith("jieba")}
    import jieba

    jieba.setLogLevel("WARNING")
    apart = jieba.Tokenizer()
    apart.FREQ, apart.total = apart.gen_pfdict(apart.get_dict_file())
    apart.initialized = True
    for name in [name for name in sys.modules if name.startswith("jieba")]:
        del sys.modules[name]
    sys.modules.update(kept)
    return apart


@settings(deadline=None)
@given(st.text(alphabet="我们在北京大学学习龘龘了的 a1.", max_size=40))
def test_words_are_jiebas_own(text: str) -> None:
    assert chinese_words(text) == tuple(jieba_apart().cut(text))


def test_a_long_text_without_known_words_is_cut() -> None:
    assert "".join(chinese_words("龘" * 50_000)) == "龘" * 50_000


_LINES = st.text(alphabet="abc(), =", min_size=1, max_size=60)


@given(_LINES, st.one_of(_LINES, st.text(alphabet="abcdefgh(), =_.0", min_size=190, max_size=260)))
def test_code_similarity_is_difflibs_ratio(line: str, reference: str) -> None:
    ratio = difflib.SequenceMatcher(None, line, reference).ratio()
    assert code_similarity(line, reference) == round(100 * ratio) / 100


def test_code_is_the_first_line_without_a_comment_or_fence() -> None:
    assert longbench("lcc", "\n```python\n# a\n// b\nx = 1\ny = 2", "x = 1") == 1.0
    assert longbench("lcc", "# a", "x = 1") == 0.0
