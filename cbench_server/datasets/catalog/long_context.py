"""Long contexts: tens of thousands of words with the answer somewhere in them."""

from functools import partial
from typing import Any

from cbench_server.datasets.catalog.fields import LETTERS, as_text, choice_on, render_choices
from cbench_server.datasets.hub.sources import Part, Row, each, each_of_config
from cbench_server.datasets.protocol import Aggregation, DatasetProtocol, use
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="long-context")

_LONGBENCH = {
    "single-document questions": ("narrativeqa", "qasper", "multifieldqa_en", "multifieldqa_zh"),
    "multi-document questions": ("hotpotqa", "2wikimqa", "musique", "dureader"),
    "summaries": ("gov_report", "qmsum", "multi_news", "vcsum"),
    "few-shot learning": ("trec", "triviaqa", "samsum", "lsht"),
    "synthetic tasks": ("passage_count", "passage_retrieval_en", "passage_retrieval_zh"),
    "code": ("lcc", "repobench-p"),
}
"""The tasks of each category, which the published table has a mean of."""
_CATEGORIES = {task: category for category, tasks in _LONGBENCH.items() for task in tasks}
_LONGBENCH_E = (
    "qasper",
    "multifieldqa_en",
    "hotpotqa",
    "2wikimqa",
    "gov_report",
    "multi_news",
    "trec",
    "triviaqa",
    "samsum",
    "passage_count",
    "passage_retrieval_en",
    "lcc",
    "repobench-p",
)
_CLASSES = ("trec", "lsht")
_CHINESE = ("multifieldqa_zh", "dureader", "vcsum", "lsht", "passage_retrieval_zh")


def _longbench(row: Row, index: int, config: str) -> Example:
    task = config.removesuffix("_e")
    # As they are: code begins with white space.
    answers = [str(answer) for answer in row["answers"]]
    example: Example = {
        "id": row.get("_id") or index,
        "context": row["context"],
        "question": row["input"],
        "answer": answers[0] if answers else "",
        "answers": answers,
        "task": task,
        "language": as_text(row.get("language")),
        "length": row.get("length") or 0,
    }
    if config != task:
        example["length_bucket"] = _bucket(example["length"])
    if task in _CLASSES:
        example["all_classes"] = [str(name) for name in row["all_classes"] or []]
    return example


def _bucket(words: int) -> str:
    """Return the column of LongBench-E's table that a length counts in."""
    return "0-4k" if words < 4000 else "4-8k" if words < 8000 else "8k+"


_LONGBENCH_ANSWERS = {
    **dict.fromkeys(("triviaqa", "samsum"), "The first line of the response is the answer."),
    **dict.fromkeys(_CLASSES, "The classes that the first line of the response names."),
    **dict.fromkeys(_LONGBENCH["synthetic tasks"], "All numbers of the response."),
    **dict.fromkeys(_LONGBENCH["code"], "The first line of the response without `, # or //."),
}


def _longbench_protocol(config: str) -> DatasetProtocol:
    task = config.removesuffix("_e")
    buckets = ("length_bucket",) if config != task else ()
    return DatasetProtocol(
        follows="THUDM/LongBench, LongBench/eval.py and metrics.py",
        shown=("context", "question", "task", "language", "length", *buckets),
        withheld=("answer", "answers", *(("all_classes",) if task in _CLASSES else ())),
        extraction=_LONGBENCH_ANSWERS.get(task, "The whole response is the answer."),
        evaluators=use("longbench", task=task),
        primary_score="longbench_score",
        groups=buckets or ("length",),
        aggregate=Aggregation(
            configs="categories",
            category=_CATEGORIES[task],
            suites=("all_e",) if buckets else _longbench_suites(task),
            bucket="".join(buckets),
        ),
    )


def _longbench_suites(task: str) -> tuple[str, ...]:
    """Name the tables of means that a task is in; code is in the English and the Chinese one."""
    if task in _LONGBENCH["code"]:
        return ("all", "all_en", "all_zh")
    return ("all", "all_zh" if task in _CHINESE else "all_en")


def _longbench_part(config: str) -> tuple[Part, ...]:
    # As the hub has it, and as the authors' data.zip does.
    copies = (f"THUDM/LongBench/{config}/test", f"THUDM/LongBench/data/{config}")
    return (Part(repository="Xnhyacinth/LongBench", config=config, also=copies),)


LONGBENCH = _dataset(
    "longbench",
    {
        name: _longbench_part(name)
        for name in (*_CATEGORIES, *(f"{task}_e" for task in _LONGBENCH_E))
    },
    each_of_config(_longbench),
    default_config="hotpotqa",
    protocol=_longbench_protocol,
    description="21 long-context tasks in English and Chinese, and LongBench-E as TASK_e.",
    size=200,
    licence="MIT",
    citation="Bai et al. 2024, arXiv:2308.14508",
)


def _longbench_v2(row: Row, index: int) -> Example | None:
    choices = [row[f"choice_{letter}"] for letter in "ABCD"]
    right = LETTERS.find(row["answer"]) if row["answer"] else -1
    example = choice_on(row["context"], row.get("_id") or index, row["question"], choices, right)
    groups = ("difficulty", "length", "domain", "sub_domain")
    return example and {**example, **{name: as_text(row.get(name)) for name in groups}}


LONGBENCH_V2 = _dataset(
    "longbench-v2",
    Part(
        repository="THUDM/LongBench-v2", split="train", also=("zai-org/LongBench-v2/default/train",)
    ),
    each(_longbench_v2),
    protocol=DatasetProtocol(
        follows="THUDM/LongBench, pred.py and result.py",
        shown=(
            *("context", "question", "choices"),
            *("difficulty", "length", "domain", "sub_domain"),
        ),
        withheld=("answer", "correct_letter"),
        extraction="The letter after 'The correct answer is', in brackets or not.",
        evaluators=use("multiple-choice", extraction="longbench-v2"),
        primary_score="mc_accuracy",
        groups=("difficulty", "length", "domain"),
    ),
    description="Hard multiple choice on contexts of 8,000 to 2,000,000 words.",
    size=503,
    licence="Apache-2.0",
    citation="Bai et al. 2024, arXiv:2412.15204",
)

_INFINITEBENCH_TASKS = (
    "longbook_qa_eng",
    "longbook_qa_chn",
    "longbook_choice_eng",
    "longbook_sum_eng",
    "longdialogue_qa_eng",
    "passkey",
    "number_string",
    "kv_retrieval",
    "math_find",
    "math_calc",
    "code_run",
    "code_debug",
)
_CHOICES = ("longbook_choice_eng", "code_debug")


# Some files begin with thousands of empty `options`, which do not show their type.
_INFINITEBENCH_SCHEMA = (
    ("id", "int64"),
    ("context", "string"),
    ("input", "string"),
    ("answer", "string[]"),
    ("options", "string[]"),
)


def _infinitebench(row: Row, index: int, config: str) -> Example:
    # All of them, in order: the values of math_calc are one answer.
    answers = [str(answer) for answer in _listed(row["answer"])]
    options = [str(option) for option in row.get("options") or []]
    question = row["input"]
    example: Example = {
        "id": index if row.get("id") is None else row["id"],
        "context": row["context"],
        "question": f"{question}\n\n{render_choices(options)}" if options else question,
        "answer": ", ".join(answers) if config == "math_calc" else (answers or [""])[0],
        "answers": answers,
        "task": config,
    }
    if config in _CHOICES:
        example["choices"] = options
        if len(answers) > 1:
            example["correct_letter"] = answers[1]
        elif answers and answers[0] in options:
            example["correct_letter"] = LETTERS[options.index(answers[0])]
    return example


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _infinitebench_protocol(config: str) -> DatasetProtocol:
    is_choice = config in _CHOICES
    return DatasetProtocol(
        follows="OpenBMB/InfiniteBench, src/compute_scores.py",
        shown=("context", "question", "task", *(("choices",) if is_choice else ())),
        withheld=("answer", "answers", *(("correct_letter",) if is_choice else ())),
        extraction=f"By the rule that InfiniteBench has for {config}.",
        evaluators=use("infinitebench", task=config),
        primary_score="infinitebench_score",
        aggregate=Aggregation(configs="macro"),
    )


INFINITEBENCH = _dataset(
    "infinitebench",
    {
        task: (
            Part(
                repository="xinrongzhang2022/InfiniteBench",
                split=task,
                url="{split}.jsonl",
                schema=_INFINITEBENCH_SCHEMA,
                also=(f"xinrongzhang2022/InfiniteBench/{task}",),
            ),
        )
        for task in _INFINITEBENCH_TASKS
    },
    each_of_config(_infinitebench),
    default_config="longbook_qa_eng",
    protocol=_infinitebench_protocol,
    description="Twelve tasks on contexts of more than 100,000 tokens, one per config.",
    size=351,
    licence="MIT",
    citation="Zhang et al. 2024, arXiv:2402.13718",
)

RECORDS = (LONGBENCH, LONGBENCH_V2, INFINITEBENCH)
