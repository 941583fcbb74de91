"""`evaluate()`: the synchronous door, for systems that are Python objects."""

from collections.abc import Iterable, Sequence

from cbench_server.cache import RowCache
from cbench_server.evaluation_job import Job, check_arguments, finish, load, tokenizer_name
from cbench_server.results import EvalResult
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Evaluator, Example, Metric, System


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
) -> EvalResult:
    """Run every system on every example and score what comes back.

    Systems run one after another, each with `max_workers` calls at once. A
    system that raises gives a row with a `failure`, and the run goes on.
    `blind` withholds reference fields such as `answer` from the systems;
    `cache_dir` keeps rows, so that a second call makes only what is missing.
    """
    names = [system.name for system in systems]
    check_arguments(names, max_workers)
    job = Job(
        systems=dict(zip(names, systems, strict=True)),
        connect=lambda system, executor: InProcessCaller(system, executor=executor),
        examples=load(dataset, max_examples, get_tokenizer(tokenizer), text_fields),
        evaluators=evaluators,
        tokenizer=get_tokenizer(tokenizer),
        text_fields=frozenset(text_fields) if text_fields is not None else None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        blind=blind,
        timeout=timeout,
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
