"""A spec crosses the wire as it is, whatever of it is set."""

from dataclasses import fields, is_dataclass
from typing import Any

from cbench_server.rpc.specs import spec_from_proto, spec_to_proto
from cbench_server.runs.digests import spec_digest
from cbench_server.spec import (
    DatasetRef,
    EvaluatorRef,
    MetricRef,
    ModelRef,
    PriceRef,
    PromptRef,
    RunSpec,
    SystemRef,
    TlsRef,
)

MODEL = ModelRef(
    base_url="http://u",
    model="m",
    credential="c",
    options={"t": 1},
    system_prompt="p",
    price=PriceRef(1.5, 2.5, 0.5),
    max_concurrency=3,
    timeout=2.5,
    context_window=4096,
)
# A spec in which no field has its default value, but for the locations of which one is set.
FULL = RunSpec(
    systems=(
        SystemRef(
            name="a",
            target="h:1",
            served_name="s",
            options={"x": 1},
            tls=TlsRef("ca", "n"),
            credential="c",
            role="control",
            swept_option="x",
            log="l",
            revision="0123abc-dirty",
            replicas=("h:3", "h:4"),
        ),
        SystemRef(attached="b"),
        SystemRef(builtin="identity", role="anchor"),
        SystemRef(proxy=MODEL, role="direct"),
        SystemRef(predictions="0" * 64),
    ),
    datasets=(
        DatasetRef("d", "c", 5, "0" * 64, "test", True, {"k": "v"}, True, "r", {"f": "g[0]"}, True),
    ),
    evaluators=(EvaluatorRef("e", "h:2", "", {"o": 1}, "second"), EvaluatorRef("e", attached="x")),
    metrics=(MetricRef("m", {"o": 2}),),
    row_timeout=5.0,
    max_concurrency=3,
    expose_reference_fields=True,
    labels={"l": "1"},
    kind="memory",
    repeats=2,
    max_failures="5%",
    reader=MODEL,
    score_field="f1",
    threshold=0.5,
    tokenizer="o200k_base",
    text_fields=("context",),
    seed=7,
    reuse=True,
    wait_timeout=9.0,
    replace_evaluators=True,
    reference_fields=("gold",),
    query_budget=100,
    question_types=("a",),
    prompt=PromptRef("{context}", "be brief", 2, 64, True),
    budget_usd=0.5,
    matched_controls=True,
    anchors=False,
    group_by=("subject",),
    errata_upload="1" * 64,
    labels_upload="2" * 64,
    allow_unqualified_judges=True,
    timed_rows=0,
    asked_again=0,
    options={"ratio": 0.5},
)


def parts(value: Any) -> list[Any]:
    """List every dataclass inside a value."""
    if is_dataclass(value):
        inner = [part for each in fields(value) for part in parts(getattr(value, each.name))]
        return [value, *inner]
    return [part for each in value for part in parts(each)] if isinstance(value, tuple) else []


def test_every_field_is_set_somewhere() -> None:
    found: dict[type, set[str]] = {}
    for part in parts(FULL):
        plain = type(part)(*[()] * 2) if type(part) is RunSpec else None
        for each in fields(part):
            default = getattr(plain, each.name) if plain is not None else each.default
            if getattr(part, each.name) != default:
                found.setdefault(type(part), set()).add(each.name)
    for kind, names in found.items():
        assert {each.name for each in fields(kind)} - names == set(), kind


def test_a_spec_comes_back_as_it_was() -> None:
    assert spec_from_proto(spec_to_proto(FULL)) == FULL


def test_what_is_unset_stays_unset() -> None:
    least = RunSpec(systems=(SystemRef(target="h:1"),), datasets=(DatasetRef("d"),))
    assert spec_from_proto(spec_to_proto(least)) == least


def test_where_a_system_is_logged_is_in_no_digest() -> None:
    least = RunSpec(systems=(SystemRef(target="h:1"),), datasets=(DatasetRef("d"),))
    logged = RunSpec(systems=(SystemRef(target="h:1", log="l"),), datasets=(DatasetRef("d"),))
    assert spec_digest(logged) == spec_digest(least)
