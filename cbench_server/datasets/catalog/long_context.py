"""Long contexts: tens of thousands of words with the answer somewhere in them."""

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import Any

from cbench_server.datasets.catalog.fields import LETTERS, choice_on, references, render_choices
from cbench_server.datasets.hub.sources import Access, Part, Row, each
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="long-context")

_LONGBENCH_TASKS = (
    "narrativeqa",
    "qasper",
    "multifieldqa_en",
    "multifieldqa_zh",
    "hotpotqa",
    "2wikimqa",
    "musique",
    "dureader",
    "gov_report",
    "qmsum",
    "multi_news",
    "vcsum",
    "trec",
    "triviaqa",
    "samsum",
    "lsht",
    "passage_count",
    "passage_retrieval_en",
    "passage_retrieval_zh",
    "lcc",
    "repobench-p",
)


def _longbench(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["context"],
        "question": row["input"],
        **references(row["answers"]),
    }


LONGBENCH = _dataset(
    "longbench",
    {
        task: (
            Part(
                repository="Xnhyacinth/LongBench",
                config=task,
                also=(f"THUDM/LongBench/{task}/test",),
            ),
        )
        for task in _LONGBENCH_TASKS
    },
    each(_longbench),
    default_config="hotpotqa",
    description="21 long-context tasks in English and Chinese, one per config.",
    official=False,
    size=200,
    licence="MIT",
    citation="Bai et al. 2024, arXiv:2308.14508",
)


def _longbench_v2(row: Row, index: int) -> Example | None:
    choices = [row[f"choice_{letter}"] for letter in "ABCD"]
    right = LETTERS.find(row["answer"]) if row["answer"] else -1
    return choice_on(row["context"], index, row["question"], choices, right)


LONGBENCH_V2 = _dataset(
    "longbench-v2",
    Part(
        repository="THUDM/LongBench-v2", split="train", also=("zai-org/LongBench-v2/default/train",)
    ),
    each(_longbench_v2),
    description="Hard multiple choice on contexts of 8,000 to 2,000,000 words.",
    evaluators=("answer-quality", "multiple-choice"),
    primary_score="mc_accuracy",
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


# Some files begin with thousands of empty `options`, which do not show their type.
_INFINITEBENCH_SCHEMA = (
    ("id", "int64"),
    ("context", "string"),
    ("input", "string"),
    ("answer", "string[]"),
    ("options", "string[]"),
)


def _infinitebench(row: Row, index: int) -> Example:
    answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    options = [str(option) for option in row.get("options") or []]
    question = row["input"]
    return {
        "id": index,
        "context": row["context"],
        "question": f"{question}\n\n{render_choices(options)}" if options else question,
        **references(answers),
    }


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
    each(_infinitebench),
    default_config="longbook_qa_eng",
    description="Twelve tasks on contexts of more than 100,000 tokens, one per config.",
    official=False,
    size=351,
    licence="MIT",
    citation="Zhang et al. 2024, arXiv:2402.13718",
)

_NOLIMA = "amodaresi/NoLiMa"
_HAYSTACKS = ("haystack/rand_shuffle", "haystack")


def _nolima(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    lines: list[str] = []
    for needle in rows:
        if not lines:
            _, path = access.text_file(_NOLIMA, _HAYSTACKS)
            lines = path.read_text(encoding="utf-8").splitlines()
        character = (needle.get("character_set") or ["Alice"])[0]
        questions = needle["questions"]
        for test_id, test in needle["tests"].items():
            example_id = f"{needle['id']}_{test_id}"
            at = _place(example_id, len(lines))
            text = _filled(needle["needle"], character, test["input_args"])
            asked = questions.get("onehop") or questions["twohop"]
            yield {
                "id": example_id,
                "context": "\n".join([*lines[:at], text, *lines[at:]]),
                "question": _filled(asked, character, test["input_args"]),
                "answer": character,
            }


def _place(example_id: str, lines: int) -> int:
    """Return the line for the needle: random, but always the same for an example."""
    digest = blake2b(example_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (lines + 1)


def _filled(template: str, character: str, arguments: list[Any]) -> str:
    text = template.replace("{CHAR}", character)
    for number, argument in enumerate(arguments, start=1):
        text = text.replace(f"{{{number}}}", str(argument))
    return text


NOLIMA = _dataset(
    "nolima",
    {
        name: (Part(repository=_NOLIMA, config=name, file=f"needlesets/{name}.json"),)
        for name in ("needle_set", "needle_set_hard", "needle_set_ONLYDirect")
    },
    _nolima,
    text_folders=_HAYSTACKS,
    default_config="needle_set",
    description="A needle in a book that shares no words with the question about it.",
    primary_score="contains",
    licence="Adobe Research License",
    citation="Modarressi et al. 2025, arXiv:2502.05167",
)

RECORDS = (LONGBENCH, LONGBENCH_V2, INFINITEBENCH, NOLIMA)
