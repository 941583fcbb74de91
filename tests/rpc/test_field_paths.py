"""Refused requests name the field that is to blame, by a path, and speak of no flags."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.daemon.embedded import embedded
from cbench_server.limits import MAX_LABELS
from tests.fixtures.ports import held_port


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchClient]:
    with (
        embedded(home=tmp_path_factory.mktemp("home")) as address,
        BenchClient(address) as client,
    ):
        yield client


IDENTITY: dict[str, Any] = {"builtin": "identity"}
QA: dict[str, Any] = {"name": "mini-qa", "max_examples": 1}
NOWHERE = {"base_url": "http://127.0.0.1:9"}


def with_two(**second: Any) -> dict[str, Any]:
    return {"systems": [IDENTITY, second]}


CASES: list[tuple[str, dict[str, Any]]] = [
    ("spec.systems", {"systems": []}),
    ("spec.systems[1]", with_two(name="lost")),
    ("spec.systems[1].builtin", with_two(builtin="identiti")),
    ("spec.systems[1].attached", with_two(attached="nobody")),
    ('spec.systems[1].options["ratio"]', with_two(builtin="identity", options={"ratio": 1})),
    ('spec.systems[0].options["n"]', {"systems": [{"builtin": "lead", "options": {"n": 0}}]}),
    ("spec.systems[1].name", with_two(builtin="identity")),
    ("spec.systems[1].name", with_two(builtin="truncate-tail", name="a/b")),
    ("spec.systems[1].proxy.base_url", with_two(proxy={"base_url": "nothing"})),
    ("spec.systems[1].proxy.credential", with_two(proxy={**NOWHERE, "credential": "none"})),
    ("spec.systems[1].credential", with_two(target="127.0.0.1:9", credential="none")),
    ("spec.systems[1].proxy.price", with_two(proxy={**NOWHERE, "price": {"input_usd": -1}})),
    ("spec.systems[1].predictions", with_two(predictions="0" * 64)),
    ("spec.systems[1].role", with_two(builtin="truncate-tail", role="direct")),
    (
        "spec.systems[1].swept_option",
        with_two(builtin="truncate-tail", swept_option="ratio", options={"ratio": 0.5}),
    ),
    ('spec.options["nope"]', {"options": {"nope": 1}}),
    ("spec.datasets", {"datasets": []}),
    ("spec.datasets[1].name", {"datasets": [QA, {"name": "mini-qb"}]}),
    ("spec.datasets[1].name", {"datasets": [QA, QA]}),
    ("spec.datasets[1].name", {"datasets": [QA, {"name": "hf:../x"}]}),
    ("spec.systems", {"systems": [{**IDENTITY, "name": f"s{n}"} for n in range(257)]}),
    ("spec.datasets[0].max_examples", {"datasets": [{**QA, "max_examples": 0}]}),
    ("spec.datasets[0].split", {"datasets": [{"name": "gsm8k", "split": "../x"}]}),
    ("spec.datasets[0].revision", {"datasets": [{"name": "gsm8k", "revision": "../x"}]}),
    ("spec.datasets[0].split", {"datasets": [{**QA, "split": "test"}]}),
    ("spec.datasets[0].revision", {"datasets": [{**QA, "revision": "main"}]}),
    ("spec.datasets[0].config", {"datasets": [{**QA, "config": "hard"}]}),
    ("spec.datasets[0].upload", {"datasets": [{"name": "own", "upload": "0" * 64}]}),
    ("spec.errata_upload", {"errata_upload": "../etc"}),
    ("spec.labels_upload", {"labels_upload": "0" * 64}),
    ("spec.datasets[0].as_transcript", {"datasets": [{"name": "mini-memory"}]}),
    ('spec.datasets[0].mapping["answer"]', {"datasets": [{**QA, "mapping": {"answer": "a["}}]}),
    ("spec.evaluators[1].name", {"evaluators": [{"name": "abstention"}, {"name": "nope"}]}),
    (
        'spec.evaluators[0].options["mod"]',
        {"evaluators": [{"name": "string-match", "options": {"mod": "all"}}]},
    ),
    (
        'spec.evaluators[0].options["credential"]',
        {
            "evaluators": [
                {"name": "llm-judge", "options": {**NOWHERE, "model": "m", "credential": "none"}}
            ]
        },
    ),
    (
        'spec.evaluators[0].options["pack"]',
        {"evaluators": [{"name": "llm-judge", "options": {**NOWHERE, "model": "m", "pack": "x"}}]},
    ),
    (
        'spec.evaluators[0].options["timeout"]',
        {"evaluators": [{"name": "code-execution", "options": {"timeout": 1e9}}]},
    ),
    (
        "spec.evaluators[0].options",
        {
            "evaluators": [
                {"name": "llm-judge", "options": {**NOWHERE, "prompts": {"": "{response}?"}}}
            ]
        },
    ),
    ("spec.evaluators[0].attached", {"evaluators": [{"name": "x", "attached": "nobody"}]}),
    ("spec.metrics[1].name", {"metrics": [{"name": "mean-score"}, {"name": "nope"}]}),
    (
        'spec.metrics[0].options["nope"]',
        {"metrics": [{"name": "mean-score", "options": {"nope": 1}}]},
    ),
    ("spec.reader.base_url", {"reader": {"base_url": "nothing"}}),
    ("spec.reader.credential", {"reader": {**NOWHERE, "credential": "none"}}),
    ("spec.reader.price", {"reader": {**NOWHERE, "price": {"input_usd": -1}}}),
    ("spec.anchors", {"anchors": True}),
    ("spec.budget_usd", {"budget_usd": -1}),
    ("spec.budget_usd", {"budget_usd": 1}),
    ("spec.repeats", {"repeats": 0}),
    ("spec.repeats", {"repeats": 10**9}),
    ("spec.max_concurrency", {"max_concurrency": 0}),
    ("spec.max_concurrency", {"max_concurrency": 10**6}),
    ("spec.timed_rows", {"timed_rows": -1}),
    ("spec.asked_again", {"asked_again": -1}),
    ("spec.row_timeout", {"row_timeout": 0}),
    ("spec.row_timeout", {"row_timeout": 10**8}),
    ("spec.wait_timeout", {"wait_timeout": 10**8}),
    ("spec.max_failures", {"max_failures": "many"}),
    ("spec.query_budget", {"query_budget": 5}),
    ("spec.threshold", {"threshold": float("nan")}),
    ("spec.labels", {"labels": {"a": "b" * (MAX_LABELS + 1)}}),
    ("spec.score_field", {"score_field": "f11"}),
    ("spec.tokenizer", {"tokenizer": "letters"}),
    ("spec.group_by[0]", {"group_by": ["nope"]}),
    ("spec.prompt.few_shot", {"prompt": {"few_shot": -1}}),
    ("spec.prompt.max_tokens", {"prompt": {"max_tokens": 0}}),
    ("spec.prompt.template", {"prompt": {"template": "nothing"}}),
]


@pytest.mark.parametrize(("path", "change"), CASES, ids=[path for path, _ in CASES])
def test_a_spec_that_cannot_be_run(client: BenchClient, path: str, change: dict[str, Any]) -> None:
    spec: dict[str, Any] = {"systems": [IDENTITY], "datasets": [QA], **change}
    with pytest.raises(Refused) as refused:
        client.start(spec)
    assert refused.value.field == path, str(refused.value)
    assert refused.value.violations == ((path, str(refused.value)),)
    assert "--" not in str(refused.value)


def test_a_system_that_is_away(client: BenchClient) -> None:
    away = {"target": f"127.0.0.1:{held_port()}"}
    with pytest.raises(Refused) as refused:
        client.start({"systems": [IDENTITY, away], "datasets": [QA]})
    assert (refused.value.field, refused.value.code) == ("spec.systems[1]", "FAILED_PRECONDITION")


@pytest.mark.parametrize("where", ["systems", "evaluators", "metrics"])
def test_a_value_without_a_kind(client: BenchClient, where: str) -> None:
    spec = bench_pb2.RunSpec()
    spec.systems.add(builtin="identity")
    spec.datasets.add(name="mini-qa")
    getattr(spec, where).add(name="x").options["ratio"].SetInParent()
    if where == "systems":
        spec.systems[1].builtin = "identity"
    place = len(getattr(spec, where)) - 1
    with pytest.raises(Refused) as refused:
        client.start(spec)
    assert refused.value.field == f'spec.{where}[{place}].options["ratio"]'
    assert refused.value.reason == "UNENCODABLE_VALUE"


def test_other_requests(client: BenchClient, tmp_path: Path) -> None:
    run_id = client.start({"systems": [IDENTITY], "datasets": [QA]})
    assert [event for event in client.watch(run_id) if event.HasField("finished")]
    for path, ask in (
        ("run_id", lambda: client.get("nope")),
        ("run_id", lambda: client.cancel("nope")),
        ("run_id", lambda: client.pin("nope")),
        ("run_id", lambda: client.compare("nope")),
        ("system", lambda: list(client.rows(run_id, system="nope"))),
        ("keep", lambda: client.prune(keep=-1)),
        ("evaluators[0].name", lambda: client.rescore(run_id, [{"name": "nope"}])),
        ("references_upload", lambda: client.rescore(run_id, references_upload="0" * 64)),
        ("errata_upload", lambda: client.rescore(run_id, errata_upload="0" * 64)),
        ("evaluator", lambda: client.score("nope", {}, {})),
        ('options["mod"]', lambda: client.score("string-match", {}, {}, {"mod": 1})),
        ("examples", lambda: client.upload([])),
    ):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.field == path, str(refused.value)
