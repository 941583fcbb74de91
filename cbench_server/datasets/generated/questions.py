"""Questions over documents of SQuAD and HotpotQA, RULER's `qa_1` and `qa_2`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from cbench_server.datasets.catalog.fields import records
from cbench_server.datasets.generated.draws import Draws
from cbench_server.datasets.generated.fitting import fitted
from cbench_server.datasets.generated.made import Made, Maker, Wanted
from cbench_server.datasets.hub.mirror import mirror_folder
from cbench_server.datasets.hub.sources import Access, Part, Row
from cbench_server.errors import BadDataset

_ROWS_READ = 2_000


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    answers: tuple[str, ...]
    documents: tuple[str, ...]
    """Those that answer it."""


def _squad(row: Row) -> tuple[_Question | None, list[str]]:
    answers = tuple(dict.fromkeys(row["answers"]["text"]))
    document = str(row["context"])
    question = _Question(str(row["question"]), answers, (document,)) if answers else None
    return question, [document]


def _hotpotqa(row: Row) -> tuple[_Question | None, list[str]]:
    paragraphs = records(row["context"])
    documents = {p["title"]: f"{p['title']}\n{''.join(p['sentences'])}" for p in paragraphs}
    titles = dict.fromkeys(fact["title"] for fact in records(row["supporting_facts"]))
    right = tuple(documents[title] for title in titles if title in documents)
    return _Question(str(row["question"]), (str(row["answer"]),), right), [*documents.values()]


_Reader = Callable[[Row], tuple[_Question | None, list[str]]]
_READERS: dict[str, tuple[Part, _Reader]] = {
    "qa_1": (Part(repository="rajpurkar/squad_v2", split="validation"), _squad),
    "qa_2": (
        Part(repository="hotpotqa/hotpot_qa", config="distractor", split="validation"),
        _hotpotqa,
    ),
}


@cache
def _pool(task: str, folder: Path | None) -> tuple[tuple[_Question, ...], tuple[str, ...]]:
    """Return the questions and documents of the first rows, each document once."""
    part, read = _READERS[task]
    questions: list[_Question] = []
    documents: dict[str, None] = {}
    rows = Access(f"ruler:{task}", folder).rows(part)
    for question, found in map(read, islice(rows, _ROWS_READ)):
        documents |= dict.fromkeys(found)
        if question is not None and question.documents:
            questions.append(question)
    return tuple(questions), tuple(documents)


def question_task(task: str) -> Maker:
    """Return what makes examples of a task; its rows are read from the mirror or the hub."""

    def make(wanted: Wanted) -> Made:
        questions, documents = _pool(task, mirror_folder(wanted.data_dir))
        if not questions:
            raise BadDataset(f'dataset "ruler": the rows of "{task}" have no question')
        draws = wanted.draws
        asked = draws.pick(questions)
        others = draws.shuffled([each for each in documents if each not in asked.documents])
        order_seed = draws.below(1 << 30)

        def build(count: int) -> str:
            shown = [*asked.documents, *_repeated(others, count)]
            placed = Draws(order_seed).shuffled(shown)
            return "\n\n".join(f"Document {n}:\n{text}" for n, text in enumerate(placed, 1))

        context = fitted(build, wanted.length)
        return Made(context, asked.text, asked.answers, asked.documents)

    return make


def _repeated(texts: Sequence[str], count: int) -> list[str]:
    return [texts[place % len(texts)] for place in range(count)] if texts else []
