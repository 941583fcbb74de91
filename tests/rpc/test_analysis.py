"""Compare, Gate, Report, Export and Import of a real daemon, as a client meets them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import comparison_pb2 as comparison
from cbench_client._gen.cbench.v1 import evaluator_pb2
from tests.conftest import Start
from tests.fixtures.preloaded import CBENCH_SERVER

SPEC: dict[str, Any] = {
    "systems": [{"builtin": "identity"}, {"builtin": "truncate-head"}],
    "options": {"ratio": 0.1},
    "datasets": [{"name": "mini-qa", "max_examples": 12}],
    "asked_again": 0,
    "timed_rows": 0,
}


@pytest.fixture
def daemon(start: Start) -> Iterator[BenchClient]:
    with BenchClient(start(CBENCH_SERVER, "--address", "127.0.0.1:0")) as client:
        yield client


def finished(client: BenchClient) -> Any:
    *_, last = client.evaluate(SPEC, include_rows=False)
    return last.finished


def test_a_run_is_compared_gated_reported_and_moved(
    daemon: BenchClient, start: Start, tmp_path: Path
) -> None:
    run = finished(daemon)
    assert [note.text for note in run.notes if note.code == "OPTION_NOT_TAKEN"] == [
        'identity has no option "ratio" and ran without.'
    ]
    prefix = run.run_id[:8]

    compared = daemon.compare(prefix)
    (pair,) = compared.pairs
    assert (pair.a, pair.b, pair.examples) == ("identity", "truncate-head", 9)
    assert pair.direction == evaluator_pb2.SCORE_DIRECTION_HIGHER_IS_BETTER
    assert pair.mean_a == 1.0
    assert pair.mean_b < 1.0
    assert pair.claimed
    assert pair.sentence.startswith("identity")
    assert len(pair.flips) == pair.flipped_to_a > 0
    assert {front.axis for front in compared.fronts} >= {"context_tokens"}

    policies = ["score at least 0.5", "bleu at least 0.5", "failures at most 0"]
    gate = daemon.gate("last", policies, system="truncate-head")
    assert (gate.run_id, gate.system, gate.passed) == (run.run_id, "truncate-head", False)
    assert [(check.verdict, check.unsuited) for check in gate.checks] == [
        (comparison.POLICY_VERDICT_FAILED, False),
        (comparison.POLICY_VERDICT_NOT_MEASURED, True),
        (comparison.POLICY_VERDICT_PASSED, False),
    ]

    page = b"".join(daemon.report(run.run_id))
    assert page.startswith(b"<!doctype html>")
    assert page.rstrip().endswith(b"</html>")
    rows = b"".join(daemon.export(run.run_id, "jsonl")).splitlines()
    assert len(rows) == 24

    texts = b"".join(daemon.export(run.run_id, "jsonl", with_texts=True)).splitlines()
    assert all(json.loads(row)["original"]["question"] for row in texts)
    log = json.loads(b"".join(daemon.export(run.run_id, "inspect", system="identity")))
    assert (log["eval"]["model"], len(log["samples"])) == ("cbench/identity", 12)

    whole = list(daemon.export(run.run_id, "run"))
    with BenchClient(
        start(CBENCH_SERVER, "--address", "127.0.0.1:0", CBENCH_HOME=str(tmp_path / "elsewhere"))
    ) as other:
        moved, is_new = other.import_run(whole)
        assert (moved.run_id, is_new) == (run.run_id, True)
        assert other.import_run(whole)[1] is False
        copy, _ = other.import_run(whole, new_id=True)
        assert copy.run_id != run.run_id
        assert len(list(other.rows(copy.run_id))) == 24


def test_refusals_name_the_field(daemon: BenchClient) -> None:
    run = finished(daemon)
    refusals: list[tuple[Callable[[], Any], str, str]] = [
        (lambda: daemon.compare("nope"), "UNKNOWN_RUN", "run_id"),
        (lambda: daemon.compare(run.run_id, systems=["identity"]), "INVALID_ARGUMENT", "systems"),
        (lambda: daemon.gate(run.run_id, ["f1 at lest 1"]), "INVALID_ARGUMENT", "policies[0]"),
        (lambda: daemon.gate(run.run_id, ["score at least 1"]), "INVALID_ARGUMENT", "system"),
        (lambda: list(daemon.export(run.run_id, "pdf")), "UNKNOWN_REPORTER", "format"),
        (
            lambda: list(daemon.export(run.run_id, "html", with_texts=True)),
            "INVALID_ARGUMENT",
            "with_texts",
        ),
        (lambda: list(daemon.export(run.run_id, "inspect")), "INVALID_ARGUMENT", "system"),
        (
            lambda: list(daemon.report(run.run_id, compare_run_ids=["x"])),
            "UNKNOWN_RUN",
            "compare_run_ids[0]",
        ),
        (lambda: daemon.import_run([b"not a run"]), "BAD_RUN_FILE", "content"),
        (
            lambda: daemon.start({**SPEC, "options": {"raito": 1}}),
            "INVALID_SPEC",
            'spec.options["raito"]',
        ),
        (
            lambda: daemon.start(
                {**SPEC, "systems": [*SPEC["systems"], {"builtin": "lead", "options": {"m": 1}}]}
            ),
            "INVALID_ARGUMENT",
            'spec.systems[2].options["m"]',
        ),
    ]
    for call, reason, field in refusals:
        with pytest.raises(Refused) as refused:
            call()
        assert (refused.value.reason, refused.value.field) == (reason, field), refused.value
