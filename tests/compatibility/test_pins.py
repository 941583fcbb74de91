"""Names that stored answers are known by: a change here would silently pay for calls again."""

from typing import Any

import pytest

from cbench_server import evaluate_memory
from cbench_server.evaluators import AnswerQuality
from cbench_server.runs.answers import system_identity
from cbench_server.runs.digests import call_id, spec_digest
from cbench_server.spec import (
    DatasetRef,
    EvaluatorRef,
    MetricRef,
    ModelRef,
    RunSpec,
    SystemRef,
    TlsRef,
)
from cbench_server.systems.caller import SystemDescription

SPECS = {
    "least": RunSpec(
        systems=(SystemRef(target="localhost:50061"),), datasets=(DatasetRef("mini-qa"),)
    ),
    "full": RunSpec(
        systems=(
            SystemRef(
                name="a",
                target="h:1",
                served_name="s",
                options={"x": 1},
                tls=TlsRef("ca", "n"),
                credential="c",
            ),
            SystemRef(attached="b"),
            SystemRef(builtin="identity"),
            SystemRef(proxy=ModelRef("http://u", "m", "c", {"t": 0}, "p")),
        ),
        datasets=(
            DatasetRef("d", "c", 5, "", "test", True, {"k": "v"}, True, "r"),
            DatasetRef("u", upload="0" * 64),
        ),
        evaluators=(EvaluatorRef("e", "h:2", "", {"o": 1}),),
        metrics=(MetricRef("m", {"o": 2}),),
        row_timeout=5.0,
        max_concurrency=3,
        expose_reference_fields=True,
        labels={"l": "1"},
        repeats=2,
        max_failures="5%",
        reader=ModelRef("http://r", "m"),
        score_field="f1",
        threshold=0.5,
        tokenizer="o200k_base",
        text_fields=("context",),
        seed=7,
        reuse=True,
        wait_timeout=9.0,
        replace_evaluators=True,
        reference_fields=("gold",),
    ),
    "memory": RunSpec(
        systems=(SystemRef(builtin="bm25"),),
        datasets=(DatasetRef("locomo"),),
        kind="memory",
        query_budget=100,
        question_types=("a", "b"),
    ),
}


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("least", "589fd7eb9f2304b657f02083a1a9ecfa3e64f8f5cbbf08f928fbab7b2cebeca9"),
        ("full", "4a7e7aaf49fa865318d27c547fba522feea9ffcc3e31571eb35bffe5a8e8e821"),
        ("memory", "ddd346540eecf4e7896599515ee8eff87e56400eed367fe6aa1ea279acb76dca"),
    ],
)
def test_a_spec_keeps_its_digest(name: str, digest: str) -> None:
    assert spec_digest(SPECS[name]) == digest


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("least", "b7a883844be730b891bf6ab48c6ef37fe5c9ade46bcc5e92b850d5fec4339ec6"),
        ("full", "01e58010a7ab915647c61254285fe90e62182f93239618732ff7db033acfd7cd"),
        ("memory", "b7a883844be730b891bf6ab48c6ef37fe5c9ade46bcc5e92b850d5fec4339ec6"),
    ],
)
def test_a_system_keeps_its_identity(name: str, identity: str) -> None:
    description = SystemDescription("sys", "1", "what it does", 4, "h:1", "cbench-python/0.1.0")
    assert system_identity(description, {"ratio": 0.5}, SPECS[name]) == identity


def test_a_row_keeps_its_call_id() -> None:
    assert call_id("20261117-070000-000abcdef", "sys", 12, 1) == "92cbcf334e88e5587684d99d"


def test_a_conversation_keeps_its_scope() -> None:
    scopes = []

    class Listener:
        name = "listener"

        def reset(self, scope: str) -> None: ...

        def ingest(self, turns: list[dict[str, Any]], scope: str) -> None:
            scopes.append(scope)

        def query(self, question: str, scope: str) -> str:
            return "an answer"

    talk = {
        "id": "c",
        "turns": [{"role": "user", "content": "x is y"}],
        "qa_pairs": [{"question": "x?", "answer": "y"}],
    }
    evaluate_memory([Listener()], [talk], [AnswerQuality()], progress=False)
    assert scopes == ["7d2d2e65734df28b8d0aa98b-0.0"]
