"""Resolution of a spec: names become components, and what cannot be run is refused early."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from cbench_server.contract import info_of
from cbench_server.datasets.record import DatasetRecord
from cbench_server.errors import InvalidSpec, NotFound, blaming
from cbench_server.limits import MAX_CONCURRENCY
from cbench_server.registry import Registry, is_factory
from cbench_server.runs.grouping import asked_figures, geometric_scores, kept_groups, ranked_by
from cbench_server.runs.plan import DatasetPlan, FailureBudget
from cbench_server.runs.resolved_dataset import ResolvedDataset, Uploads
from cbench_server.runs.spec_limits import check_kind
from cbench_server.runs.wiring import (
    announced_scores,
    own_evaluators,
    primary_score,
)
from cbench_server.spec import DatasetRef, EvaluatorRef, MetricRef, RunSpec
from cbench_server.types import Evaluator, Metric

DEFAULT_METRICS = [
    "mean-score",
    "every-score",
    "padded-answers",
    "conduct",
    "pass-rate",
    "pass-at-k",
    "compression-ratio",
    "cost-of-pass",
    "latency",
]
MODEL_METRICS = ("model-cost", "model-usage")
MODEL_EVALUATORS = frozenset({"llm-judge", "memory-judge", "answer-likelihood"})
LIKELIHOOD_METRICS = {"answer-likelihood": "likelihood-retention"}
"""The figure of an evaluator whose scores mean little one by one."""
MEMORY_METRICS = ("per-qa-type", "token-efficiency")

FindEvaluator = Callable[[EvaluatorRef], Awaitable[Evaluator]]
"""Returns an evaluator served at a target, attached, or registered here."""


def check_spec(spec: RunSpec) -> None:
    """Refuse a spec whose values cannot be meant, naming the value."""
    if not spec.systems:
        raise InvalidSpec(
            "the run names no system.",
            field="spec.systems",
            flags="Give one with --system, --proxy or --builtin.",
        )
    if not spec.datasets:
        raise InvalidSpec(
            "the run names no dataset.", field="spec.datasets", flags="Give one with --dataset."
        )
    check_kind(spec)
    at_least_one: dict[str, tuple[str, int | None]] = {
        "spec.repeats": ("repeats", spec.repeats),
        "spec.max_concurrency": ("max_concurrency", spec.max_concurrency),
    }
    for place, ref in enumerate(spec.datasets):
        name = f'max_examples of "{ref.label}"'
        at_least_one[f"spec.datasets[{place}].max_examples"] = (name, ref.max_examples)
    for field, (name, value) in at_least_one.items():
        if value is not None and value < 1:
            raise InvalidSpec(f"{name} must be at least 1, not {value}.", field=field)
    if (spec.max_concurrency or 0) > MAX_CONCURRENCY:
        raise InvalidSpec(
            f"max_concurrency must be at most {MAX_CONCURRENCY}, not {spec.max_concurrency}.",
            field="spec.max_concurrency",
        )
    if (spec.timed_rows or 0) < 0:
        raise InvalidSpec(
            f"timed_rows must be at least 0, not {spec.timed_rows}.", field="spec.timed_rows"
        )
    for name, seconds in {
        "row_timeout": spec.row_timeout,
        "wait_timeout": spec.wait_timeout,
    }.items():
        if not seconds > 0:
            raise InvalidSpec(
                f"{name} must be more than zero, not {seconds:g}s.", field=f"spec.{name}"
            )
    labels = [ref.label for ref in spec.datasets]
    if len(set(labels)) != len(labels):
        twice = next(place for place, each in enumerate(labels) if each in labels[:place])
        raise InvalidSpec(
            f"each dataset can be named once; got {', '.join(labels)}.",
            field=f"spec.datasets[{twice}].name",
            flags="Give a file another name: --dataset NAME=FILE",
        )
    with blaming("spec.max_failures"):
        parse_failure_budget(spec.max_failures)


def parse_failure_budget(text: str) -> FailureBudget:
    """Read `10`, `5%` or nothing."""
    if not text:
        return FailureBudget()
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)%", text):
        if float(match[1]) > 100:
            raise InvalidSpec(f'max_failures is a share of the rows; "{text}" is more than all.')
        return FailureBudget(share=float(match[1]) / 100)
    if text.isdecimal():
        return FailureBudget(count=int(text))
    raise InvalidSpec(
        f'max_failures must be a number such as 10 or a share such as 5%, not "{text}".'
    )


def resolve_datasets(
    spec: RunSpec,
    registry: Registry,
    uploads: Uploads,
    *,
    recorded: Mapping[str, Any] | None = None,
) -> list[ResolvedDataset]:
    """Find every dataset, so that an unknown name fails before anything runs.

    With what is `recorded` of a run that has read them, their examples need not be there.
    """
    resolved = []
    for place, ref in enumerate(spec.datasets):
        with blaming(f"spec.datasets[{place}]"):
            dataset = _resolved(ref, spec, registry, uploads, is_read=recorded is None)
        resolved.append(dataset if recorded is None else dataset.as_recorded(recorded))
    return resolved


def _resolved(
    ref: DatasetRef, spec: RunSpec, registry: Registry, uploads: Uploads, *, is_read: bool
) -> ResolvedDataset:
    record = None
    if not ref.upload:
        with blaming("name"):
            record = registry.dataset(ref.name)
    elif is_read:
        with blaming("upload"):
            uploads.count(ref.upload)
    _check_form(ref, record, spec.kind)
    dataset = ResolvedDataset(
        ref,
        record,
        uploads,
        spec.seed,
        registry.data_dir,
        is_memory=spec.kind == "memory",
        question_types=spec.question_types,
    )
    if is_read:
        # Nothing is read yet, but what cannot be read is refused.
        dataset.examples()
        if spec.kind != "memory" and not ref.as_transcript and dataset.holds_conversations:
            raise _nobody_asked(ref)
    return dataset


def _check_form(ref: DatasetRef, record: DatasetRecord | None, kind: str) -> None:
    """Refuse conversations where nobody would be asked about them."""
    if kind == "memory":
        if ref.as_transcript:
            raise InvalidSpec(
                "as_transcript means nothing in a memory run; leave it out.", field="as_transcript"
            )
        return
    if record is not None and "qa_pairs" in record.reference_fields and not ref.as_transcript:
        raise _nobody_asked(ref)


def _nobody_asked(ref: DatasetRef) -> InvalidSpec:
    named = "FILE" if ref.upload else ref.label
    return InvalidSpec(
        f'dataset "{ref.label}" holds conversations and questions about them. Evaluate memory '
        "systems on it, or set as_transcript, which gives each question with the whole "
        "conversation as context.",
        field="as_transcript",
        flags=f"As commands: cbench memory run --dataset {named}, or add --as-transcript.",
    )


async def resolve_evaluators(
    spec: RunSpec, datasets: Sequence[ResolvedDataset], find: FindEvaluator
) -> dict[str, DatasetPlan]:
    """Wire each dataset with its own evaluators, and those the spec adds."""
    named: list[Evaluator] = []
    for place, ref in enumerate(spec.evaluators):
        with blaming(f"spec.evaluators[{place}]"):
            named.append(await find(ref))
    taken = {evaluator.name for evaluator in named}
    plans: dict[str, DatasetPlan] = {}
    for dataset in datasets:
        own: list[Evaluator] = []
        if not spec.replace_evaluators:
            refs = own_evaluators(dataset.protocol, spec.kind)
            own = [await find(ref) for ref in refs]
            own = [each for each in own if each.name not in taken or not _is_covered(each, named)]
        if not own and not named:
            raise InvalidSpec(
                "no evaluator is left: name one.",
                field="spec.evaluators",
                flags="It is named with --evaluator.",
            )
        replacing = named if spec.replace_evaluators else None
        plans[dataset.ref.label] = DatasetPlan(
            evaluators=[*own, *named],
            reference_fields=dataset.reference_fields(spec),
            primary_score=spec.score_field or primary_score(dataset.protocol, replacing),
            own_scores=announced_scores(own),
            is_score_chosen=bool(spec.score_field) or dataset.protocol.counts_abstentions,
            groups=kept_groups(dataset.protocol, spec.group_by),
        )
    return plans


def _is_covered(own: Evaluator, named: Sequence[Evaluator]) -> bool:
    """Whether an evaluator of the run's own gives all that the dataset's gives.

    One with other settings may not, and must not cost the dataset its headline.
    """
    scores = {score.name for each in named for score in info_of(each).scores}
    return all(score.name in scores for score in info_of(own).scores)


def resolve_metrics(spec: RunSpec, registry: Registry) -> list[Metric]:
    """Build the metrics, with the spec's score field and threshold where they take them."""
    refs = list(spec.metrics) or [MetricRef(name) for name in DEFAULT_METRICS]
    if not spec.metrics:
        if spec.kind == "memory":
            refs += [MetricRef(name) for name in MEMORY_METRICS]
        if len(spec.datasets) > 1:
            geometric = geometric_scores(spec, registry)
            refs.append(MetricRef("per-dataset", {"geometric": geometric} if geometric else {}))
        refs += _own_metrics(spec, registry)
        # What a memory costs is what it makes a model read.
        cost = {"cost_field": "mean_input_tokens"} if spec.kind == "memory" else {}
        refs.append(MetricRef("pareto-rank", {**cost, **ranked_by(spec, registry)}))
    refs += asked_figures(spec, registry)
    figures = [LIKELIHOOD_METRICS.get(ref.name, "") for ref in spec.evaluators]
    refs += [MetricRef(name) for name in figures if name and all(r.name != name for r in refs)]
    # What a model was asked, and what was cut, belongs beside any figure it led to.
    has_models = (
        spec.reader is not None
        or any(ref.proxy for ref in spec.systems)
        or any(ref.name in MODEL_EVALUATORS for ref in spec.evaluators)
    )
    wanted = MODEL_METRICS if has_models else () if spec.metrics else MODEL_METRICS[:1]
    refs += [MetricRef(name) for name in wanted if all(ref.name != name for ref in refs)]
    settings: dict[str, Any] = {"threshold": spec.threshold}
    made = []
    for place, ref in enumerate(refs):
        with blaming(f"spec.metrics[{place}]"):
            try:
                accepted = _accepted(registry, ref.name, settings)
            except NotFound as error:
                error.field = "name"
                raise
            made.append(registry.create_metric(ref.name, {**accepted, **ref.options}))
    return made


def _own_metrics(spec: RunSpec, registry: Registry) -> list[MetricRef]:
    """Return the metric by which a dataset's figure is published, where it is not a mean."""
    if len({ref.name for ref in spec.datasets}) != 1 or any(ref.upload for ref in spec.datasets):
        return []
    ref = spec.datasets[0]
    try:
        aggregate = registry.dataset(ref.name).protocol_of(ref.config).aggregate
    except NotFound:
        return []  # Examples of the user's own making, under a name of theirs.
    if aggregate.rows == "effective-length" and len(spec.datasets) > 1:
        return [MetricRef("effective-length")]
    return []


def _accepted(registry: Registry, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    import inspect

    factory = registry.get("metric", name)
    parameters = inspect.signature(factory).parameters if is_factory(factory) else ()
    return {key: value for key, value in settings.items() if key in parameters}
