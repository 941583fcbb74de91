"""What a daemon lacks for a run is named, each thing once, and nothing that is there."""

from typing import Any

import pytest

from cbench_client._gen.cbench.v1 import gateway_pb2, system_pb2
from cbench_server.registry import registry
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.credentials import Credential, Credentials
from cbench_server.rpc.holdings import Holdings
from cbench_server.spec import (
    DatasetRef,
    EvaluatorRef,
    ModelRef,
    Run,
    RunSpec,
    RunState,
    SystemProgress,
    SystemRef,
)

URL = "https://models.example/v1"
WITHOUT_ANY = RunSpec((SystemRef(builtin="identity"),), (DatasetRef("mini-qa"),))


class NoUploads:
    def count(self, digest: str) -> int:
        raise AssertionError(digest)

    def iterate(self, digest: str) -> Any:
        raise AssertionError(digest)


async def lacking(spec: RunSpec, run: dict[str, Any] | None = None) -> list[str]:
    attachments = Attachments()
    await attachments.add(
        gateway_pb2.Hello(systems=[system_pb2.SystemInfo(name="here", version="2")])
    )
    known = {
        "set": Credential("CBENCH_TEST_KEY", URL),
        "unset": Credential("CBENCH_TEST_NO_KEY", URL),
    }
    holdings = Holdings(registry, attachments, Credentials(known), NoUploads())
    about = {"run_id": "r1", "spec": spec, "state": RunState.RUNNING, "create_time": 0.0}
    return holdings.missing(Run(**about | (run or {})))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBENCH_TEST_KEY", "k")


async def test_a_run_that_needs_nothing_special_lacks_nothing() -> None:
    assert await lacking(WITHOUT_ANY) == []


async def test_what_is_held_is_not_named() -> None:
    spec = RunSpec(
        (SystemRef(attached="here"), SystemRef(proxy=ModelRef(URL, credential="set"))),
        (DatasetRef("mini-qa"),),
        (EvaluatorRef("answer-quality"),),
        reader=ModelRef(URL, credential="set"),
    )
    assert await lacking(spec) == []


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"systems": (SystemRef(attached="away"),)}, 'the attached system "away"'),
        ({"systems": (SystemRef(builtin="own"),)}, 'the system "own", which an --import brings'),
        (
            {"systems": (SystemRef(target="h:1", credential="none"),)},
            'the credential "none" (no credential "none" in the daemon\'s configuration',
        ),
        (
            {"systems": (SystemRef(proxy=ModelRef(URL, credential="unset")),)},
            "the environment variable CBENCH_TEST_NO_KEY of the daemon, which is not set",
        ),
        ({"reader": ModelRef(URL, credential="none")}, 'the credential "none"'),
        ({"evaluators": (EvaluatorRef("", attached="away"),)}, 'the attached evaluator "away"'),
        ({"evaluators": (EvaluatorRef("own"),)}, 'the evaluator "own", which an --import brings'),
        (
            {"evaluators": (EvaluatorRef("llm-judge", options={"credential": "none"}),)},
            'the credential "none"',
        ),
        ({"datasets": (DatasetRef("own-data"),)}, "data ("),
    ],
)
async def test_what_is_missing_is_named(spec: dict[str, Any], named: str) -> None:
    parts = {"systems": WITHOUT_ANY.systems, "datasets": WITHOUT_ANY.datasets} | spec
    [found] = await lacking(RunSpec(**parts))
    assert named in found


async def test_another_version_of_an_attached_system_is_another_one() -> None:
    spec = RunSpec((SystemRef(attached="here"),), (DatasetRef("mini-qa"),))
    begun = {"config": {"systems": [{"name": "here", "version": "1"}]}}
    assert await lacking(spec, begun) == []
    begun["progress"] = {"here": SystemProgress(3, 0, 0)}
    assert await lacking(spec, begun) == ['version "1" of the attached system "here"']


async def test_a_rescoring_needs_no_systems() -> None:
    spec = RunSpec((SystemRef(attached="away"),), (DatasetRef("mini-qa"),))
    assert await lacking(spec, {"parent_run_id": "r0"}) == []
