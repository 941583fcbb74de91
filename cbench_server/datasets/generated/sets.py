"""The generated datasets, each with its tasks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cbench_server.datasets.generated.chains import variable_chain
from cbench_server.datasets.generated.documents import multi_document
from cbench_server.datasets.generated.frequencies import common_words, frequent_words
from cbench_server.datasets.generated.haystacks import digest_of
from cbench_server.datasets.generated.made import Maker, examples
from cbench_server.datasets.generated.needles import NEEDLE_TASKS
from cbench_server.datasets.generated.pairs import key_value
from cbench_server.datasets.generated.parameters import Parameters, read_parameters
from cbench_server.datasets.generated.passkeys import math_find, number_string, passkey
from cbench_server.datasets.generated.questions import question_task
from cbench_server.datasets.protocol import (
    EVIDENCE,
    Aggregation,
    DatasetProtocol,
    differs,
    uses,
)
from cbench_server.datasets.record import DatasetRecord, described_by
from cbench_server.errors import NotFound
from cbench_server.spec import EvaluatorRef
from cbench_server.types import Example

_GRID = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
_FIVE = (0, 25, 50, 75, 100)

_OWN_TEXT = differs("Sentences, words and haystack are our own, and lengths those of the context.")


@dataclass(frozen=True, slots=True)
class _Rule:
    """Whose rule scores the tasks of a dataset: an evaluator, its settings by task, its score."""

    follows: str
    evaluator: str
    score: str
    options: Callable[[str], dict[str, Any]]
    aggregate: Aggregation = Aggregation()  # noqa: RUF009 - it cannot change

    def protocol(self, task: str) -> DatasetProtocol:
        """Return what a task measures."""
        scorer = EvaluatorRef(self.evaluator, options=self.options(task))
        return DatasetProtocol(
            follows=self.follows,
            shown=("context", "question", "task", "length"),
            withheld=("answer", "answers", "evidence", "depth"),
            evaluators=(*uses("answer-quality", "context-retention"), scorer, *EVIDENCE),
            primary_score=self.score,
            groups=("task", "length", "depth"),
            aggregate=self.aggregate,
            data=_OWN_TEXT,
        )


_RULER = _Rule(
    "NVIDIA/RULER, scripts/eval/synthetic/constants.py",
    "string-match",
    "string_match",
    lambda task: {"mode": "part" if task.startswith("qa_") else "all"},
    Aggregation(configs="macro", bucket="length"),
)
_LOST_IN_THE_MIDDLE = _Rule(
    "nelson-liu/lost-in-the-middle, src/lost_in_the_middle/metrics.py",
    "subspan-em",
    "subspan_em",
    lambda task: {},
)
_INFINITEBENCH = _Rule(
    "OpenBMB/InfiniteBench, src/compute_scores.py",
    "infinitebench",
    "infinitebench_score",
    lambda task: {"task": "kv_retrieval" if task == "kv" else task},
)


_TEXT_TASKS = [name for name, task in NEEDLE_TASKS.items() if task.hay == "essay"]
_IN_TEXT = [NEEDLE_TASKS[name].make for name in _TEXT_TASKS]


def _generated(
    name: str,
    tasks: Mapping[str, Maker],
    default: Parameters,
    rule: _Rule,
    description: str,
    citation: str,
    *,
    reads_mirror: bool = False,
) -> DatasetRecord:
    def read(config: str) -> Parameters:
        asked = read_parameters(config, name, tasks, default)
        if asked.haystack and tasks[asked.task] not in _IN_TEXT:
            others = ", ".join(f"ruler:{each}" for each in _TEXT_TASKS)
            raise NotFound(
                f'dataset "{name}": {asked.task or "it"} hides nothing in running text, so it '
                f"takes no haystack; these do: niah, {others}"
            )
        return asked

    def check(config: str) -> str:
        return str(read(config))

    def load(config: str, data_dir: str = "") -> Iterator[Example]:
        asked = read(config)
        return examples(name, asked.task or name, tasks[asked.task], asked, data_dir)

    def protocol(config: str) -> DatasetProtocol:
        return rule.protocol(read(config).task)

    def made_from(config: str, data_dir: str) -> dict[str, Any]:
        haystack = read(config).haystack
        if not haystack:
            return {}
        return {"haystack": haystack, "haystack_digest": digest_of(haystack, data_dir)}

    return DatasetRecord(
        name=name,
        load=load,
        **described_by(protocol, tasks),
        check_config=check,
        made_from=made_from,
        reads_mirror=reads_mirror,
        description=description,
        family="generated",
        configs=tuple(task for task in tasks if task),
        default_config=str(default),
        size=default.count * len(default.lengths) * len(default.depths or (0,)),
        licence="MIT",
        citation=citation,
        source="made by cbench-server from a seed",
    )


RULER = _generated(
    "ruler",
    {
        **{name: task.make for name, task in NEEDLE_TASKS.items()},
        "vt": variable_chain,
        "cwe": common_words,
        "fwe": frequent_words,
        "qa_1": question_task("qa_1"),
        "qa_2": question_task("qa_2"),
    },
    Parameters("niah_single_1"),
    _RULER,
    "RULER's tasks in words of our own: needles, variables, frequent words, at any length.",
    "Hsieh et al. 2024, arXiv:2404.06654",
    reads_mirror=True,
)

NIAH = _generated(
    "niah",
    {"": NEEDLE_TASKS["niah_single_2"].make},
    Parameters(depths=_GRID, count=1),
    _RULER,
    "One needle in a haystack, for each depth and each length.",
    "Kamradt 2023, github.com/gkamradt/LLMTest_NeedleInAHaystack",
    reads_mirror=True,
)

KV_RETRIEVAL = _generated(
    "kv-retrieval",
    {"": key_value},
    Parameters(depths=_FIVE, count=4),
    _LOST_IN_THE_MIDDLE,
    "The value of one key among random ones, at five places.",
    "Liu et al. 2023, arXiv:2307.03172",
)

MULTI_DOCUMENT = _generated(
    "multi-document",
    {"": multi_document},
    Parameters(depths=_FIVE, count=4),
    _LOST_IN_THE_MIDDLE,
    "One document with the answer among others without it, at five places.",
    "Liu et al. 2023, arXiv:2307.03172",
)

PASSKEY = _generated(
    "passkey",
    {
        "passkey": passkey,
        "number_string": number_string,
        "kv": key_value,
        "math_find": math_find,
    },
    Parameters("passkey"),
    _INFINITEBENCH,
    "A number to find in a text of nothing, or in a list.",
    "Mohtashami and Jaggi 2023, arXiv:2305.16300; Zhang et al. 2024, arXiv:2402.13718",
)

RECORDS = (RULER, NIAH, KV_RETRIEVAL, MULTI_DOCUMENT, PASSKEY)
