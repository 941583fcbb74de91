"""Limits of a spec: how large its values may be, so that no run makes all others hard to read."""

import math

from cbench_server.errors import InvalidSpec, blaming
from cbench_server.limits import (
    MAX_DATASETS,
    MAX_EVALUATORS,
    MAX_LABELS,
    MAX_METRICS,
    MAX_NAME,
    MAX_REPEATS,
    MAX_ROW_TIMEOUT_S,
    MAX_SYSTEMS,
    MAX_WAIT_TIMEOUT_S,
)
from cbench_server.spec import RunSpec


def check_limits(spec: RunSpec) -> None:
    """Refuse what is beyond them, naming the value."""
    for name, given, most in (
        ("systems", spec.systems, MAX_SYSTEMS),
        ("datasets", spec.datasets, MAX_DATASETS),
        ("evaluators", spec.evaluators, MAX_EVALUATORS),
        ("metrics", spec.metrics, MAX_METRICS),
    ):
        if len(given) > most:
            raise InvalidSpec(
                f"a run has at most {most} {name}, not {len(given):,}. Make several runs.",
                field=f"spec.{name}",
            )
    if spec.repeats > MAX_REPEATS:
        raise InvalidSpec(
            f"repeats must be at most {MAX_REPEATS:,}, not {spec.repeats:,}.", field="spec.repeats"
        )
    if not math.isfinite(spec.threshold):
        raise InvalidSpec(
            f"threshold must be a finite number, not {spec.threshold}.", field="spec.threshold"
        )
    for name, asked, most in (
        ("row_timeout", spec.row_timeout, MAX_ROW_TIMEOUT_S),
        ("wait_timeout", spec.wait_timeout, MAX_WAIT_TIMEOUT_S),
    ):
        if not asked <= most:
            raise InvalidSpec(
                f"{name} must be at most {most:,} s, not {asked:,.0f}: a run holds "
                "a place that others wait for.",
                field=f"spec.{name}",
            )
    for place, ref in enumerate(spec.systems):
        with blaming(f"spec.systems[{place}].name"):
            check_name(ref.name)
    size = sum(len(key) + len(value) for key, value in spec.labels.items())
    if size > MAX_LABELS:
        raise InvalidSpec(
            f"labels may have {MAX_LABELS:,} characters together, not {size:,}. Keep long texts "
            "in a file, and its name in the label.",
            field="spec.labels",
        )


def check_kind(spec: RunSpec) -> None:
    """Refuse what has no meaning in this kind of run."""
    if spec.query_budget is not None and spec.query_budget < 1:
        raise InvalidSpec(
            f"query_budget must be at least 1, not {spec.query_budget}.", field="spec.query_budget"
        )
    meaningless = {"query_budget": spec.query_budget, "question_types": spec.question_types}
    if spec.kind == "memory":
        # A memory system is told the turns and the question, and nothing else of an example.
        meaningless = {
            "expose_reference_fields": spec.expose_reference_fields,
            "text_fields": spec.text_fields,
            "reuse": spec.reuse,
            "matched_controls": spec.matched_controls,
        }
    for name, value in meaningless.items():
        if value:
            raise InvalidSpec(
                f"{name} means nothing in a {spec.kind} run; leave it out.", field=f"spec.{name}"
            )


def check_name(name: str) -> None:
    """Refuse a name that no table could show, or that would mean a place."""
    if len(name) > MAX_NAME:
        raise InvalidSpec(
            f'a system\'s name has at most {MAX_NAME} characters; "{name[:20]}..." has '
            f"{len(name):,}."
        )
    if name and not name.strip():
        raise InvalidSpec(f"a system's name has something to read; it is {name!r}.")
    if "/" in name or not name.isprintable():
        raise InvalidSpec(
            f"a system's name has no slash and nothing that cannot be printed; it is {name!r}."
        )
