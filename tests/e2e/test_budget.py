"""Runs with a budget, on a daemon, with models that bill, lie, keep silent and hang up."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_client.messages.convert import value_from_proto
from cbench_server.daemon.embedded import embedded
from tests.fixtures.priced_model import PRICE, PricedModel, priced_model

from .following import Followed, follow
from .processes import DaemonProcess, wait_until
from .test_memory_runs import conversations

EXAMPLES = [
    {"id": n, "context": f"Box {n} holds {n} red balls. " * 9, "question": "Box?", "answer": str(n)}
    for n in range(20)
]
JUDGE = {"model": "j", "pack": "strict", "input_price": 2.5, "output_price": 10.0}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchClient]:
    home: Path = tmp_path_factory.mktemp("home")
    with embedded(home=str(home)) as target, BenchClient(target) as connected:
        yield connected


@contextmanager
def judging() -> Iterator[PricedModel]:
    with priced_model("YES") as judge:
        yield judge


def spec_for(client: BenchClient, model: PricedModel, **more: Any) -> dict[str, Any]:
    digest, _ = client.upload(EXAMPLES)
    priced = {"base_url": model.url, "model": "m", "price": PRICE}
    return {
        "systems": [
            {"builtin": "identity"},
            {"builtin": "truncate-head", "options": {"ratio": 0.5}},
            {"proxy": priced, "name": "asked"},
        ],
        "datasets": [{"name": "balls", "upload": digest}],
        "reader": priced,
        "prompt": {"max_tokens": 9},
        "anchors": False,
        **more,
    }


def budget_of(followed: Followed) -> dict[str, Any]:
    found = value_from_proto(followed.finished.config["budget"])
    assert isinstance(found, dict)
    return found


def noted(followed: Followed, code: str) -> str:
    return " ".join(note.text for note in followed.finished.notes if note.code == code)


def examples_by_system(client: BenchClient, run_id: str) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for row in client.rows(run_id):
        found.setdefault(row.system, set()).add(row.ordinal)
    return found


def assert_paired(client: BenchClient, followed: Followed, systems: int = 3) -> int:
    """Check that all systems have the same examples, fewer than there are; return how many."""
    found = examples_by_system(client, followed.finished.run_id)
    assert len(found) == systems
    first, *others = found.values()
    assert all(other == first for other in others)
    assert 0 < len(first) < len(EXAMPLES)
    assert f"cover {len(first)} of {len(EXAMPLES)} examples" in noted(followed, "STOPPED_BY_BUDGET")
    return len(first)


def test_the_spent_money_is_what_the_servers_charged_and_figures_are_of_finished_examples(
    client: BenchClient,
) -> None:
    with priced_model() as model, judging() as judge:
        options = {**JUDGE, "base_url": judge.url}
        judged = {"evaluators": [{"name": "llm-judge", "options": options}]}
        spec = spec_for(client, model, **judged, allow_unqualified_judges=True)
        ended = follow(client.evaluate({**spec, "budget_usd": 0.05}))
        spent = float(model.bill + judge.bill)
    assert (ended.state, ended.finished.failure.reason) == ("FAILED", "BUDGET_SPENT")
    assert ended.finished.failure.field == "spec.budget_usd"
    assert budget_of(ended)["spent_usd"] == pytest.approx(spent)
    assert spent <= 0.05
    count = assert_paired(client, ended)
    assert f"This run cost ${spent:.6g}: " in noted(ended, "COST")
    assert "judge controls $" in noted(ended, "COST")
    for summary in ended.finished.summaries:
        assert summary.metrics["num_scored"] == count
        assert summary.metrics["judge_cost_usd"] > 0
    costs = [dict(row.cost_usd) for row in ended.rows]
    assert {who for row in costs for who in row} == {"system", "reader", "llm-judge"}


def test_a_budget_that_ends_with_the_controls_of_judges_ends_the_run(client: BenchClient) -> None:
    with priced_model() as model, judging() as judge:
        options = {**JUDGE, "base_url": judge.url, "model": "another"}
        judged = {"evaluators": [{"name": "llm-judge", "options": options}]}
        spec = spec_for(client, model, **judged, allow_unqualified_judges=True, budget_usd=0.01)
        ended = follow(client.evaluate(spec))
        assert ended.finished.failure.reason == "BUDGET_SPENT"
        assert 0 < judge.bill <= Decimal("0.01")
        assert model.requests == []
    assert "cover 0 examples, of a number that was not yet known" in noted(
        ended, "STOPPED_BY_BUDGET"
    )


def test_what_nobody_reports_counts_as_much_as_it_may_have_cost(client: BenchClient) -> None:
    with priced_model(reports=False) as model:
        ended = follow(client.evaluate(spec_for(client, model, budget_usd=0.01)))
        spent = budget_of(ended)
        assert model.bill < Decimal("0.01")
    assert spent["unconfirmed_usd"] == spent["spent_usd"] <= 0.01
    assert spent["spent_usd"] >= float(model.bill)
    count = assert_paired(client, ended)
    assert all("COST_UNKNOWN" in row.marks and not row.cost_usd for row in ended.rows)
    assert f"What {3 * count} rows cost is not known in full" in noted(ended, "COST")


def test_a_model_that_counts_more_tokens_than_was_thought_is_believed(client: BenchClient) -> None:
    with priced_model(times=5) as model:
        ended = follow(client.evaluate(spec_for(client, model, budget_usd=0.02)))
        assert budget_of(ended)["spent_usd"] == pytest.approx(float(model.bill))
        # The first request shows how it counts, and those after it are set aside for by that.
        assert model.bill <= Decimal("0.02")
    # What was set aside before that was too little, so that earlier examples got it all.
    found = set.intersection(*examples_by_system(client, ended.finished.run_id).values())
    assert found
    assert f"cover {len(found)} of 20 examples" in noted(ended, "STOPPED_BY_BUDGET")
    for summary in ended.finished.summaries:
        assert summary.metrics["num_scored"] == len(found)


def test_requests_that_were_lost_count_and_refusals_do_not(client: BenchClient) -> None:
    with priced_model() as model:

        def misbehave(number: int, handler: Any) -> None:
            if number % 3 == 0:
                handler.reply(503, "busy")
            elif number % 5 == 0:
                # It has done its work, and hangs up.
                model.usage_of({"messages": [{"content": "word " * 60}]})
                handler.hang_up()

        model.before = misbehave
        ended = follow(client.evaluate(spec_for(client, model, budget_usd=0.01)))
        assert model.bill <= Decimal("0.01")
        spent = budget_of(ended)
    assert float(model.bill) <= spent["spent_usd"] <= 0.01
    assert spent["unconfirmed_usd"] > 0
    paired = examples_by_system(client, ended.finished.run_id)
    finished = set.intersection(*paired.values())
    assert f"cover {len(finished)} of 20" in noted(ended, "STOPPED_BY_BUDGET")
    assert any("COST_UNKNOWN" in row.marks and row.cost_usd for row in ended.rows)


def test_a_run_without_a_budget_gets_none_and_one_in_progress_keeps_its_own(
    client: BenchClient,
) -> None:
    with priced_model() as model:
        waiting, go_on = threading.Event(), threading.Event()

        def wait(number: int, handler: Any) -> None:
            waiting.set()
            go_on.wait(60)

        model.before = wait
        run_id = client.start(spec_for(client, model, budget_usd=1.0))
        waiting.wait(60)
        with pytest.raises(Refused, match="its budget stands until it ends"):
            client.resume(run_id, budget_usd=2.0)
        client.cancel(run_id)
        go_on.set()
        run = client.get(run_id)
        # What was in flight may have been charged.
        assert value_from_proto(run.config["budget"])["unconfirmed_usd"] > 0
        model.before = lambda number, handler: None
        client.resume(run_id)
        assert follow(client.watch(run_id)).state == "SUCCEEDED"
        plain = client.start(spec_for(client, model))
        client.cancel(plain)
        with pytest.raises(Refused, match="was started without a budget"):
            client.resume(plain, budget_usd=1.0)
        for amount in (-1.0, float("nan")):
            with pytest.raises(Refused, match=f"budget_usd must be US dollars.*{amount}"):
                client.start(spec_for(client, model, budget_usd=amount))


def test_answers_of_earlier_runs_are_not_paid_for_again(client: BenchClient) -> None:
    with priced_model() as model:
        spec = spec_for(client, model)
        first = follow(client.evaluate(spec))
        bill = model.bill
        again = follow(client.evaluate({**spec, "reuse": True, "budget_usd": 0.0001}))
        assert (again.state, model.bill) == ("SUCCEEDED", bill)
    assert budget_of(again)["spent_usd"] == 0
    assert noted(again, "COST") == "This run cost $0."
    costs = {each.system: each.metrics["cost_usd"] for each in first.finished.summaries}
    assert costs == {each.system: each.metrics["cost_usd"] for each in again.finished.summaries}


def test_memory_runs_stop_after_whole_conversations(client: BenchClient) -> None:
    with priced_model() as model, judging() as judge:
        digest, _ = client.upload(conversations(6, questions=3))
        options = {**JUDGE, "base_url": judge.url, "pack": "memory-qa"}
        spec = {
            "kind": "RUN_KIND_MEMORY",
            "systems": [{"builtin": "full-history"}, {"builtin": "last-n"}],
            "datasets": [{"name": "talks", "upload": digest}],
            "reader": {"base_url": model.url, "model": "m", "price": PRICE},
            "prompt": {"max_tokens": 9},
            "evaluators": [{"name": "memory-judge", "options": options}],
            "allow_unqualified_judges": True,
            "anchors": False,
        }
        whole = follow(client.evaluate(spec))
        assert whole.state == "SUCCEEDED"
        # The judge was tested by the first run.
        rows = sum(sum(row.cost_usd.values()) for row in whole.rows)
        before = model.bill + judge.bill
        limit = rows * 0.7 + 0.012
        ended = follow(client.evaluate({**spec, "budget_usd": limit}))
        spent = float(model.bill + judge.bill - before)
        assert ended.finished.failure.reason == "BUDGET_SPENT"
        assert 0 < spent <= limit
        by_system = examples_by_system(client, ended.finished.run_id)
        assert len({frozenset(found) for found in by_system.values()}) == 1
        # Of a conversation all questions are asked, or none.
        [found, _] = by_system.values()
        assert all({3 * n, 3 * n + 1, 3 * n + 2} <= found for n in {each // 3 for each in found})
        last = ended.finished.last_sequence
        client.resume(ended.finished.run_id, budget_usd=1.0)
        events = [*client.watch(ended.finished.run_id, last)]
        assert events[-1].finished.progress.completed_rows == 36


@pytest.mark.parametrize("timed_rows", [30, 0], ids=["timed", "not timed"])
def test_repeats_of_conversations_do_not_stop_a_run_that_has_money_for_the_next(
    client: BenchClient, timed_rows: int
) -> None:
    with priced_model() as model:
        digest, _ = client.upload(conversations(14, questions=3))
        spec = {
            "kind": "RUN_KIND_MEMORY",
            "systems": [{"builtin": "full-history"}, {"builtin": "last-n"}],
            "datasets": [{"name": "talks", "upload": digest}],
            "reader": {"base_url": model.url, "model": "m", "price": PRICE},
            "prompt": {"max_tokens": 90},
            "anchors": False,
            "repeats": 2,
            "timed_rows": timed_rows,
        }

        def left_and_next(limit: float) -> tuple[float, float]:
            message = follow(
                client.evaluate({**spec, "budget_usd": limit})
            ).finished.failure.message
            spent, whole, most = map(float, re.findall(r"\$([0-9.]+)", message))
            return whole - spent, most

        _, most = left_and_next(0.000001)
        # What the first conversation did not take is enough for another, not at once.
        left, most = left_and_next(most * 1.9)
    assert left < most


@pytest.mark.parametrize("kills", [1, 2])
def test_a_daemon_killed_in_the_middle_spends_no_more_than_the_budget(
    tmp_path: Path, kills: int
) -> None:
    with priced_model() as model:
        stuck, go_on = threading.Event(), threading.Event()

        def wait(number: int, handler: Any) -> None:
            if number > 9:
                stuck.set()
                go_on.wait(60)

        model.before = wait
        run_id = ""
        for _ in range(kills):
            with DaemonProcess(tmp_path) as daemon, BenchClient(daemon.address) as client:
                run_id = run_id or client.start(spec_for(client, model, budget_usd=0.009))
                assert stuck.wait(60)
                daemon.kill()
            stuck.clear()
        # The server does, and charges for, what it was asked all the same.
        go_on.set()
        with DaemonProcess(tmp_path) as daemon, BenchClient(daemon.address) as client:
            ended = follow(client.watch(run_id))
            wait_until(lambda: len(model.charged) == len(model.requests))
            assert ended.finished.failure.reason == "BUDGET_SPENT"
            assert 0 < model.bill <= Decimal("0.009")
            spent = budget_of(ended)["spent_usd"]
            assert float(model.bill) <= spent <= 0.009
            assert noted(ended, "COST").startswith("This run cost at least $")
            assert f"answers were lost it is at most ${spent:.6g}." in noted(ended, "COST")
            kept = {(row.system, row.ordinal) for row in client.rows(run_id)}
            last = ended.finished.last_sequence
            client.resume(run_id, budget_usd=1.0)
            more = [event.row for event in client.watch(run_id, last) if event.HasField("row")]
            assert not kept & {(row.system, row.ordinal) for row in more}
            assert len(kept) + len(more) == 60


def test_controls_that_the_run_adds_are_paid_from_the_same_budget(client: BenchClient) -> None:
    with priced_model() as model:
        cut = [{"id": each["id"], "context": each["context"][:60]} for each in EXAMPLES]
        outputs, _ = client.upload(cut)
        spec = spec_for(client, model, matched_controls=True)
        spec["systems"] = [{"predictions": outputs, "name": "short"}]
        follow(client.evaluate({**spec, "matched_controls": False}))
        alone = model.bill
        ended = follow(client.evaluate({**spec, "budget_usd": float(alone * 6)}))
        assert alone < model.bill - alone <= alone * 6
        assert ended.finished.failure.reason == "BUDGET_SPENT"
        assert "what the run adds to them, such as controls, is not complete" in noted(
            ended, "STOPPED_BY_BUDGET"
        )
        last = ended.finished.last_sequence
        client.resume(ended.finished.run_id, budget_usd=1.0)
        events = [*client.watch(ended.finished.run_id, last)]
        assert events[-1].finished.state == ended.finished.state - 1
        assert not any(note.code == "STOPPED_BY_BUDGET" for note in events[-1].finished.notes)


def test_a_rescored_part_stays_a_part_and_pays_only_its_judges(client: BenchClient) -> None:
    with priced_model() as model, judging() as judge:
        ended = follow(client.evaluate(spec_for(client, model, budget_usd=0.005)))
        count = assert_paired(client, ended)
        options = {**JUDGE, "base_url": judge.url}
        run = client.rescore(
            ended.finished.run_id,
            [{"name": "llm-judge", "options": options}],
            allow_unqualified_judges=True,
        )
        again = follow(client.watch(run.run_id))
        assert again.state == "SUCCEEDED"
        assert f"cover {count} of 20 examples" in noted(again, "STOPPED_BY_BUDGET")
        assert f"This run cost ${float(judge.bill):.6g}: judge" in noted(again, "COST")
        assert {frozenset(row.cost_usd) for row in again.rows} == {
            frozenset({"reader", "llm-judge"}),
            frozenset({"system", "llm-judge"}),
        }


def test_a_run_that_a_daemon_hands_back_knows_what_it_has_spent(tmp_path: Path) -> None:
    with priced_model() as model:
        begun, go_on = threading.Event(), threading.Event()

        def wait(number: int, handler: Any) -> None:
            if number >= 9:
                begun.set()
                go_on.wait(60)

        model.before = wait
        with embedded(home=str(tmp_path)) as target, BenchClient(target) as client:
            run_id = client.start(spec_for(client, model, budget_usd=1.0))
            assert begun.wait(60)
        # Its answer comes too late, and is charged all the same.
        go_on.set()
        with embedded(home=str(tmp_path)) as target, BenchClient(target) as client:
            run = client.cancel(run_id)
            known = value_from_proto(run.config["budget"])
            wait_until(lambda: len(model.charged) == len(model.requests))
            assert known["at_most_usd"] >= float(model.bill)
            found = examples_by_system(client, run_id)
            finished = set.intersection(*found.values()) if len(found) == 3 else set()
            said = " ".join(note.text for note in run.notes)
            assert f"the figures cover {len(finished)} " in said


def test_anchors_are_paid_from_the_same_budget(client: BenchClient) -> None:
    with priced_model() as model:
        spec = spec_for(client, model)
        follow(client.evaluate(spec))
        alone = model.bill
        limit = float(alone) * 1.4
        ended = follow(client.evaluate({**spec, "anchors": True, "budget_usd": limit}))
        assert alone < model.bill - alone <= Decimal(limit)
        assert ended.finished.failure.reason == "BUDGET_SPENT"
    assert "all systems have finished all 20 examples" in noted(ended, "STOPPED_BY_BUDGET")
    by_system = {each.system: each.metrics for each in ended.finished.summaries}
    assert {by_system[name]["num_scored"] for name in ("identity", "asked")} == {20}


@pytest.mark.parametrize("budget", [None, 1.0])
def test_what_is_asked_again_is_counted_and_paid_from_the_budget(
    client: BenchClient, budget: float | None
) -> None:
    with priced_model() as model:
        spec = spec_for(client, model)
        spec = {**spec, "systems": spec["systems"][2:], "reader": None, "anchors": None}
        spec = {name: value for name, value in spec.items() if value is not None}
        limited = {} if budget is None else {"budget_usd": budget, "asked_again": 2}
        ended = follow(client.evaluate({**spec, **limited}))
        assert ended.state == "SUCCEEDED"
        assert len(model.requests) == (25 if budget is None else 22)
        again = sum(model.charged[20:], Decimal(0))
        bill = float(model.bill)
    assert f"This run cost ${bill:.6g}: system $" in noted(ended, "COST")
    assert f"asked again ${float(again):.6g}." in noted(ended, "COST")
    cost = value_from_proto(ended.finished.config["cost"])
    assert isinstance(cost, dict)
    assert cost["usd"] == pytest.approx(bill, rel=1e-12)
    if budget is not None:
        assert budget_of(ended)["spent_usd"] == pytest.approx(bill, rel=1e-12)
