"""`evaluate()` and `evaluate_memory()`: the front doors for systems that are Python objects."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

from cbench_server.contract import info_of, name_of
from cbench_server.datasets.conversations import questions
from cbench_server.datasets.protocol import DatasetProtocol
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS
from cbench_server.errors import InvalidInput
from cbench_server.registry import load_dataset, registry
from cbench_server.results import EvalResult
from cbench_server.runs.identity import digest_of
from cbench_server.runs.local import Job, finish, tokenizer_name
from cbench_server.runs.local_arguments import check_names, check_numbers, components
from cbench_server.runs.local_config import LocalRecord
from cbench_server.runs.local_data import Given, Source, load, sources_of
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.resolution import resolve_metrics
from cbench_server.runs.row_cache import RowCache
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.runs.wiring import (
    UNKNOWN_PROTOCOL,
    announced_scores,
    check_score_field,
    missing_references,
    own_evaluators,
    primary_score,
)
from cbench_server.spec import DatasetRef, RunSpec
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller, is_factory
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Evaluator, Example, MemorySystem, Metric, System

Kind = Literal["process", "memory"]


def evaluate(
    systems: Sequence[System],
    dataset: Given,
    evaluators: Sequence[Evaluator] | None = None,
    metrics: Sequence[Metric] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    text_fields: Sequence[str] | None = None,
    max_workers: int | None = None,
    cache_dir: str | PathLike[str] | None = None,
    *,
    tokenizer: str | Tokenizer | None = None,
    blind: bool = False,
    timeout: float = 3600.0,
    score_field: str | None = None,
    timed_rows: int = TIMED_ROWS,
) -> EvalResult:
    """Run every system on every example and score what comes back.

    `dataset` is a name (`mini-qa`, `mmlu:anatomy`), a file, examples, or a list
    of names and files. Without `evaluators` and `metrics` those are taken that
    the command line takes; an empty list means none. `score_field` names the
    score that counts, if it is not to be the dataset's own.

    Systems run one after another, each with `max_workers` calls at once. A
    system that raises gives a row with a `failure`, and the run goes on.
    `blind` withholds reference fields such as `answer` from the systems;
    `cache_dir` keeps answers, so that a second call asks only for what is
    missing. The first `timed_rows` are called one at a time: latencies come
    from those.
    """
    chosen = components(systems, "system")
    names = [system.name for system in chosen]
    check_names(names)
    check_numbers(
        max_workers=max_workers, max_examples=max_examples, timeout=timeout, timed_rows=timed_rows
    )
    sources = sources_of(dataset, load_dataset)
    counter = get_tokenizer(tokenizer)
    examples = load(sources, max_examples, counter, text_fields)
    plans = _plans(sources, examples, evaluators, "process", score_field, blind=blind)
    job = Job(
        systems=dict(zip(names, chosen, strict=True)),
        connect=lambda system, workers: InProcessCaller(system, workers=workers),
        examples=examples,
        plans=plans,
        tokenizer=counter,
        text_fields=frozenset(text_fields) if text_fields is not None else None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        timeout=timeout,
        timed_rows=timed_rows,
        progress=progress,
        settings=_settings(cache_dir, "process", tokenizer, text_fields, blind),
    )
    settings = {
        "tokenizer": tokenizer_name(tokenizer),
        "text_fields": list(text_fields) if text_fields is not None else None,
        "blind": blind,
    }
    record = LocalRecord(job.systems, sources, examples, plans, settings)
    return finish(job, _metrics(metrics, plans, "process"), record.describe)


def evaluate_memory(
    systems: Sequence[MemorySystem | Callable[[], MemorySystem]],
    dataset: Given,
    evaluators: Sequence[Evaluator] | None = None,
    metrics: Sequence[Metric] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    *,
    question_types: Sequence[str] = (),
    budget: int | None = None,
    max_workers: int | None = None,
    cache_dir: str | PathLike[str] | None = None,
    tokenizer: str | Tokenizer | None = None,
    timeout: float = 3600.0,
    score_field: str | None = None,
    timed_rows: int = TIMED_ROWS,
) -> EvalResult:
    """Feed every conversation to every system, ask its questions and score the answers.

    An example has an `id`, `turns` and `qa_pairs` (`question`, `answer` and,
    where known, `type` and `is_abstention`); each question gives a row.
    `dataset`, `evaluators`, `metrics` and `score_field` are as in `evaluate()`;
    `max_examples` counts conversations. A system that fails to ingest or to
    answer gives rows with a `failure`. With `max_workers` conversations are
    held at once, where the system is a class, or takes a `scope`; `timed_rows` is as for
    `evaluate`.
    """
    chosen = components(systems, "memory system", may_be_class=True)
    names = [_name_of(system) for system in chosen]
    check_names(names)
    check_numbers(
        budget=budget,
        max_workers=max_workers,
        max_examples=max_examples,
        timeout=timeout,
        timed_rows=timed_rows,
    )
    sources = sources_of(dataset, load_dataset)
    asked = [_questions(source, question_types, max_examples) for source in sources]
    counter = get_tokenizer(tokenizer)
    examples = load(asked, None, counter, None)
    plans = _plans(sources, examples, evaluators, "memory", score_field, blind=False)
    digests = _digests(examples)
    job = Job(
        systems=dict(zip(names, chosen, strict=True)),
        connect=lambda system, workers: InProcessMemoryCaller(system, workers=workers),
        examples=examples,
        plans=plans,
        tokenizer=counter,
        text_fields=None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        timeout=timeout,
        timed_rows=timed_rows,
        progress=progress,
        settings=_settings(cache_dir, "memory", tokenizer, budget),
        kind="memory",
        query_budget=budget,
        content=lambda entry: digests.get(entry.ordinal, ""),
    )
    settings = {
        "tokenizer": tokenizer_name(tokenizer),
        "budget": budget,
        "question_types": list(question_types),
    }
    record = LocalRecord(job.systems, sources, examples, plans, settings)
    return finish(job, _metrics(metrics, plans, "memory"), record.describe_memory)


def _plans(
    sources: Sequence[Source],
    examples: Sequence[SpooledExample],
    evaluators: Sequence[Evaluator] | None,
    kind: Kind,
    score_field: str | None,
    *,
    blind: bool,
) -> dict[str, DatasetPlan]:
    """Say how the rows of each tag are scored, and warn of tags that cannot be."""
    given = None if evaluators is None else components(evaluators, "evaluator")
    known = {source.label: source.loaded for source in sources if source.loaded}
    plans: dict[str, DatasetPlan] = {}
    for tag in dict.fromkeys(entry.dataset for entry in examples):
        loaded = known.get(tag)
        protocol = (loaded and loaded.protocol) or UNKNOWN_PROTOCOL
        own = () if given is not None else own_evaluators(protocol, kind)
        made = [registry.create_evaluator(ref.name, ref.options) for ref in own]
        record = loaded.record if loaded else None
        withheld = record.reference_fields if record else DEFAULT_REFERENCE_FIELDS
        plans[tag] = DatasetPlan(
            evaluators=made if given is None else given,
            reference_fields=frozenset(withheld) if blind else frozenset(),
            primary_score=score_field or _primary_score(protocol, given),
            own_scores=announced_scores(made) if given is None else (),
            is_score_chosen=bool(score_field) or protocol.counts_abstentions,
        )
        tagged = (entry.example for entry in examples if entry.dataset == tag)
        if sentence := missing_references(tag, plans[tag], tagged):
            warnings.warn(sentence, stacklevel=3)
    check_score_field(score_field or "", plans.values())
    return plans


def _primary_score(protocol: DatasetProtocol, given: Sequence[Evaluator] | None) -> str:
    """Name the score that counts; empty where that shows only in what the evaluators give."""
    if given is not None and not any(info_of(each).scores for each in given):
        return ""
    return primary_score(protocol, given)


def _metrics(
    metrics: Sequence[Metric] | None, plans: Mapping[str, DatasetPlan], kind: Kind
) -> list[Metric]:
    if metrics is not None:
        return components(metrics, "metric")
    refs = tuple(DatasetRef(tag) for tag in plans)
    return resolve_metrics(RunSpec(systems=(), datasets=refs, kind=kind), registry)


def _settings(cache_dir: object, *settings: Any) -> str:
    """Name the settings that answers and token counts depend on."""
    found = digest_of(settings)
    if cache_dir and not found:
        warnings.warn(
            "nothing is cached, for it cannot be known what the tokenizer does. Put it in a file, "
            "as a function.",
            stacklevel=3,
        )
    return found


def _name_of(system: MemorySystem | Callable[[], MemorySystem]) -> str:
    name = name_of(system)
    if name is None and is_factory(system):
        return system().name  # type: ignore[operator] # a factory is called
    if name is None:
        raise InvalidInput(f"{type(system).__name__} is not a memory system: it has no name.")
    return name


def _questions(source: Source, question_types: Sequence[str], max_examples: int | None) -> Source:
    """Turn conversations into questions, under the tag that each conversation carries."""
    tags: list[str | None] = []

    def tagged() -> Iterator[Example]:
        for conversation in source.examples:
            tags.append(conversation.get("dataset"))
            yield conversation

    def asked() -> Iterator[Example]:
        found = questions(
            tagged(),
            label=source.label or "",
            question_types=question_types,
            max_conversations=max_examples,
        )
        for question in found:
            tag = tags[-1]
            yield question if tag is None else {**question, "dataset": tag}

    return replace(source, examples=asked())


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
