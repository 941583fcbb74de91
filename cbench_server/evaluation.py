"""`evaluate()` and `evaluate_memory()`: the front doors for systems that are Python objects."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from cbench_server.contract import name_of
from cbench_server.datasets.conversations import questions
from cbench_server.errors import InvalidInput, InvalidSpec
from cbench_server.results import EvalResult
from cbench_server.runs.local import Job, check_arguments, finish, load, tokenizer_name
from cbench_server.runs.row_cache import RowCache
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller, is_factory
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Evaluator, Example, MemorySystem, Metric, System


def evaluate(
    systems: Sequence[System],
    dataset: Iterable[Example],
    evaluators: Sequence[Evaluator],
    metrics: Sequence[Metric] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    text_fields: Sequence[str] | None = None,
    max_workers: int | None = None,
    cache_dir: str | None = None,
    *,
    tokenizer: str | Tokenizer | None = None,
    blind: bool = False,
    timeout: float = 3600.0,
    timed_rows: int = TIMED_ROWS,
) -> EvalResult:
    """Run every system on every example and score what comes back.

    Systems run one after another, each with `max_workers` calls at once. A
    system that raises gives a row with a `failure`, and the run goes on.
    `blind` withholds reference fields such as `answer` from the systems;
    `cache_dir` keeps rows, so that a second call makes only what is missing.
    The first `timed_rows` are called one at a time: latencies come from those.
    """
    names = [system.name for system in systems]
    check_arguments(names, max_workers, timed_rows)
    job = Job(
        systems=dict(zip(names, systems, strict=True)),
        connect=lambda system, workers: InProcessCaller(system, workers=workers),
        examples=load(dataset, max_examples, get_tokenizer(tokenizer), text_fields),
        evaluators=evaluators,
        tokenizer=get_tokenizer(tokenizer),
        text_fields=frozenset(text_fields) if text_fields is not None else None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        blind=blind,
        timeout=timeout,
        timed_rows=timed_rows,
        progress=progress,
        settings=repr((tokenizer, text_fields, blind)),
    )
    return finish(
        job,
        metrics,
        {
            "num_examples": len(job.examples),
            "tokenizer": tokenizer_name(tokenizer),
            "text_fields": list(text_fields) if text_fields is not None else None,
            "blind": blind,
        },
    )


def evaluate_memory(
    systems: Sequence[MemorySystem | Callable[[], MemorySystem]],
    dataset: Iterable[Example],
    evaluators: Sequence[Evaluator],
    metrics: Sequence[Metric] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    *,
    question_types: Sequence[str] = (),
    budget: int | None = None,
    max_workers: int | None = None,
    cache_dir: str | None = None,
    tokenizer: str | Tokenizer | None = None,
    timeout: float = 3600.0,
    timed_rows: int = TIMED_ROWS,
) -> EvalResult:
    """Feed every conversation to every system, ask its questions and score the answers.

    An example has an `id`, `turns` and `qa_pairs` (`question`, `answer` and,
    where known, `type` and `is_abstention`); each question gives a row.
    `max_examples` counts conversations. A system that fails to ingest or to
    answer gives rows with a `failure`. With `max_workers` conversations are
    held at once, where the system is a class, or takes a `scope`; `timed_rows` is as for
    `evaluate`.
    """
    if budget is not None and budget < 1:
        raise InvalidSpec(f"budget must be at least 1 token, not {budget}")
    names = [_name_of(system) for system in systems]
    check_arguments(names, max_workers, timed_rows)
    chosen = _questions(dataset, question_types, max_examples)
    examples = load(chosen, None, get_tokenizer(tokenizer), None)
    digests = _digests(examples)
    job = Job(
        systems=dict(zip(names, systems, strict=True)),
        connect=lambda system, workers: InProcessMemoryCaller(system, workers=workers),
        examples=examples,
        evaluators=evaluators,
        tokenizer=get_tokenizer(tokenizer),
        text_fields=None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        blind=False,
        timeout=timeout,
        timed_rows=timed_rows,
        progress=progress,
        settings=repr(("memory", tokenizer, budget)),
        kind="memory",
        query_budget=budget,
        content=lambda entry: digests.get(entry.ordinal, ""),
    )
    return finish(
        job,
        metrics,
        {
            "num_examples": sum("turns" in entry.example for entry in examples),
            "num_questions": len(examples),
            "tokenizer": tokenizer_name(tokenizer),
            "budget": budget,
            "question_types": list(question_types),
        },
    )


def _name_of(system: MemorySystem | Callable[[], MemorySystem]) -> str:
    name = name_of(system)
    if name is None and is_factory(system):
        return system().name  # type: ignore[operator] # a factory is called
    if name is None:
        raise InvalidInput(f"{type(system).__name__} is not a memory system: it has no name.")
    return name


def _questions(
    dataset: Iterable[Example], question_types: Sequence[str], max_examples: int | None
) -> Iterator[Example]:
    """Yield the questions under the tag that their conversation carries."""
    tags: list[str | None] = []

    def tagged() -> Iterator[Example]:
        for conversation in dataset:
            tags.append(conversation.get("dataset"))
            yield conversation

    found = questions(
        tagged(), label="", question_types=question_types, max_conversations=max_examples
    )
    for question in found:
        tag = tags[-1]
        yield question if tag is None else {**question, "dataset": tag}


def _digests(examples: Sequence[SpooledExample]) -> dict[int, str]:
    """Name what the answer to each question depends on: itself and its conversation."""
    digests: dict[int, str] = {}
    head = ""
    for entry in examples:
        if "turns" in entry.example:
            head = entry.digest
        if head and entry.digest:
            digests[entry.ordinal] = f"{head}\n{entry.digest}"
    return digests
