"""`evaluate()` and `evaluate_memory()`: the front doors for systems that are Python objects."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

from cbench_server import __version__
from cbench_server.contract import info_of
from cbench_server.datasets.protocol import DatasetProtocol
from cbench_server.datasets.withheld import OF_ANY_FILE, Withheld, of_evaluators
from cbench_server.metrics.per_group import PerGroup
from cbench_server.registry import load_dataset, registry
from cbench_server.results import EvalResult
from cbench_server.runs.grouping import kept_groups
from cbench_server.runs.identity import digest_of
from cbench_server.runs.local import Job
from cbench_server.runs.local_arguments import check_numbers, components
from cbench_server.runs.local_config import LocalRecord
from cbench_server.runs.local_data import Given, Source, check_asked, load, sources_of
from cbench_server.runs.local_findings import Lines, read_corrections
from cbench_server.runs.local_groups import checked_fields, described_figures, refs_of
from cbench_server.runs.local_prompts import prompt_ref, prompts_of
from cbench_server.runs.local_questions import question_digests, questions_in
from cbench_server.runs.local_result import finish, tokenizer_name
from cbench_server.runs.local_spec import Asked, with_data
from cbench_server.runs.local_systems import Given as GivenSystem
from cbench_server.runs.local_systems import Kind, Sweep
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.resolution import resolve_metrics
from cbench_server.runs.row_cache import RowCache
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.suites import named_parts
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.runs.wiring import (
    UNKNOWN_PROTOCOL,
    announced_scores,
    check_score_field,
    missing_references,
    own_evaluators,
    primary_score,
)
from cbench_server.spec import RunSpec
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.telemetry.traces import tracer_from_environment
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Evaluator, MemorySystem, Metric, System


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
    group_by: Sequence[str] = (),
    asked_again: int | None = None,
    repeats: int = 1,
    reader: OpenAIProxy | None = None,
    anchors: bool | None = None,
    controls: Literal["matched", "none"] | None = None,
    direct: OpenAIProxy | None = None,
    sweep: Sweep | None = None,
    budget_usd: float | None = None,
    prompt: str | PathLike[str] | None = None,
    system_prompt: str = "",
    few_shot: int = 0,
    labels: Lines | None = None,
    errata: Lines | None = None,
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
    from those. `group_by` names fields of the examples by which the score is
    summarised as well; a suite such as `bbh:all` is run with all its parts.
    At the end up to `asked_again` rows (5), none of fewer than ten, are
    asked a second time, to see whether a system is deterministic. With `repeats`
    each system gets each example so often, and every try is a row: intervals
    take the tries of an example together, and what differed is counted.

    An `OpenAIProxy` is asked with the dataset's prompt, as by `cbench run --proxy`.
    As `reader` it answers from the contexts that systems leave, and `anchors`
    (unless False) show its noise and what it guesses; `direct` is the model of
    the proxies without them. `controls="matched"` holds each compressor
    against cuts of the same length. `sweep={"ratio": [0.1, 0.5]}` makes the one
    class among `systems` with each value, beside the whole context and, unless
    `controls="none"`, such cuts. `budget_usd` is the most that models may cost
    in this call: systems then advance example by example, and figures cover the
    examples that all of them have finished.

    `prompt` is "plain", a template, or the `Path` of a file with one; `system_prompt`
    goes before it, and `few_shot` other examples go into it. `labels` of people and
    `errata` of the data are files, or what their lines hold, as for `cbench run`.
    """
    corrections = read_corrections(labels, errata)
    check_numbers(
        max_workers=max_workers,
        max_examples=max_examples,
        timeout=timeout,
        timed_rows=timed_rows,
        asked_again=asked_again,
        repeats=repeats,
    )
    asked = Asked(
        kind="process",
        sweep=sweep,
        direct=direct,
        reader=reader,
        anchors=anchors,
        controls=controls,
        budget_usd=budget_usd,
        prompt=prompt_ref(prompt, system_prompt, few_shot),
    )
    spec, named = asked.spec_of(
        systems,
        {
            "row_timeout": timeout,
            "score_field": score_field or "",
            "timed_rows": timed_rows,
            "asked_again": asked_again,
            "group_by": tuple(group_by),
            "repeats": repeats,
        },
    )
    sources = sources_of(named_parts(dataset, registry), load_dataset)
    counter = get_tokenizer(tokenizer)
    examples = load(sources, max_examples, counter, text_fields)
    check_asked(examples)
    fields = checked_fields(group_by, sources, examples)
    plans = _plans(sources, examples, evaluators, "process", score_field, fields, blind=blind)
    refs = refs_of(sources, plans, max_examples)
    spec = with_data(spec, refs, plans.values())
    prompts = prompts_of(spec, sources, examples)
    job = Job(
        spec=spec,
        systems=named,
        examples=examples,
        plans=plans,
        prompts=prompts,
        corrections=corrections,
        tokenizer=counter,
        text_fields=frozenset(text_fields) if text_fields is not None else None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        progress=progress,
        settings=_settings(cache_dir, "process", tokenizer, text_fields, blind, *_told(reader)),
        reader=reader,
    )
    settings = {
        "tokenizer": tokenizer_name(tokenizer),
        "text_fields": list(text_fields) if text_fields is not None else None,
        "blind": blind,
    }
    settings |= described_figures(spec, fields)
    limits = {"max_examples": max_examples}
    record = LocalRecord(_objects(named), sources, examples, plans, prompts, settings, limits)
    corrections.check(plans, named, examples, sources, record)
    used = _metrics(metrics, job.spec, fields)
    return finish(job, used, record.describe, tracer_from_environment(__version__))


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
    group_by: Sequence[str] = (),
    repeats: int = 1,
    reader: OpenAIProxy | None = None,
    anchors: bool | None = None,
    sweep: Sweep | None = None,
    budget_usd: float | None = None,
    prompt: str | PathLike[str] | None = None,
    system_prompt: str = "",
    labels: Lines | None = None,
    errata: Lines | None = None,
) -> EvalResult:
    """Feed every conversation to every system, ask its questions and score the answers.

    An example has an `id`, `turns` and `qa_pairs` (`question`, `answer` and,
    where known, `type` and `is_abstention`); each question gives a row.
    `dataset`, `evaluators`, `metrics` and `score_field` are as in `evaluate()`;
    `max_examples` counts conversations. A system that fails to ingest or to
    answer gives rows with a `failure`. With `max_workers` conversations are
    held at once, where the system is a class, or takes a `scope`; `timed_rows`,
    `group_by`, `reader`, `anchors`, `sweep` and `budget_usd` are as for `evaluate`,
    and so are `repeats`, each of which puts the conversations in anew, `prompt`,
    `system_prompt`, `labels` and `errata`.
    """
    corrections = read_corrections(labels, errata)
    check_numbers(
        budget=budget,
        max_workers=max_workers,
        max_examples=max_examples,
        timeout=timeout,
        timed_rows=timed_rows,
        repeats=repeats,
    )
    asked = Asked(
        kind="memory",
        sweep=sweep,
        direct=None,
        reader=reader,
        anchors=anchors,
        controls=None,
        budget_usd=budget_usd,
        prompt=prompt_ref(prompt, system_prompt, 0),
    )
    spec, named = asked.spec_of(
        systems,
        {
            "row_timeout": timeout,
            "score_field": score_field or "",
            "timed_rows": timed_rows,
            "group_by": tuple(group_by),
            "repeats": repeats,
            "query_budget": budget,
            "question_types": tuple(question_types),
        },
    )
    sources = sources_of(named_parts(dataset, registry), load_dataset)
    found = [questions_in(source, question_types, max_examples) for source in sources]
    counter = get_tokenizer(tokenizer)
    examples = load(found, None, counter, None)
    fields = checked_fields(group_by, sources, examples)
    plans = _plans(sources, examples, evaluators, "memory", score_field, fields, blind=True)
    digests = question_digests(examples)
    refs = refs_of(sources, plans, max_examples)
    spec = with_data(spec, refs, plans.values())
    prompts = prompts_of(spec, sources, examples)
    job = Job(
        spec=spec,
        systems=named,
        examples=examples,
        plans=plans,
        prompts=prompts,
        corrections=corrections,
        tokenizer=counter,
        text_fields=None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        progress=progress,
        settings=_settings(cache_dir, "memory", tokenizer, budget, *_told(reader)),
        reader=reader,
        content=lambda entry: digests.get(entry.ordinal, ""),
    )
    settings = {
        "tokenizer": tokenizer_name(tokenizer),
        "budget": budget,
        "question_types": list(question_types),
    }
    settings |= described_figures(spec, fields)
    limits = {"max_examples": max_examples, "question_types": [*question_types]}
    record = LocalRecord(_objects(named), sources, examples, plans, prompts, settings, limits)
    whole = [questions_in(source, (), None) for source in sources]
    corrections.check(plans, named, examples, whole, record)
    used = _metrics(metrics, job.spec, fields)
    return finish(job, used, record.describe_memory, tracer_from_environment(__version__))


def _plans(
    sources: Sequence[Source],
    examples: Sequence[SpooledExample],
    evaluators: Sequence[Evaluator] | None,
    kind: Kind,
    score_field: str | None,
    group_by: Sequence[str],
    *,
    blind: bool,
) -> dict[str, DatasetPlan]:
    """Say how the rows of each tag are scored, and warn of tags that cannot be."""
    given = None if evaluators is None else components(evaluators, "evaluator")
    known = {source.label: source.loaded for source in sources if source.loaded}
    scored_by = of_evaluators(each.name for each in given or ())
    plans: dict[str, DatasetPlan] = {}
    for tag in dict.fromkeys(entry.dataset for entry in examples):
        loaded = known.get(tag)
        protocol = (loaded and loaded.protocol) or UNKNOWN_PROTOCOL
        own = () if given is not None else own_evaluators(protocol, kind)
        made = [registry.create_evaluator(ref.name, ref.options) for ref in own]
        withheld = loaded.reference_fields if loaded else OF_ANY_FILE
        plans[tag] = DatasetPlan(
            evaluators=made if given is None else given,
            reference_fields=Withheld((*withheld, *scored_by)) if blind else frozenset(),
            primary_score=score_field or _primary_score(protocol, given),
            own_scores=announced_scores(made) if given is None else (),
            is_score_chosen=bool(score_field) or protocol.counts_abstentions,
            groups=kept_groups(protocol, group_by),
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
    metrics: Sequence[Metric] | None, spec: RunSpec, group_by: tuple[str, ...]
) -> list[Metric]:
    if metrics is not None:
        return [*components(metrics, "metric"), *([PerGroup(group_by)] if group_by else [])]
    return resolve_metrics(replace(spec, group_by=group_by), registry)


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


def _told(reader: OpenAIProxy | None) -> list[str]:
    """Name what a reader's answers depend on."""
    return [] if reader is None else ["reader", reader.version]


def _objects(named: Mapping[str, GivenSystem]) -> dict[str, Any]:
    return {name: given.system for name, given in named.items()}
