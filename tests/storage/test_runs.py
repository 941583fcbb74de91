"""Runs: made once for a request, found by state and label, and counted as rows come in."""

import math
from collections.abc import Callable

import pytest

from cbench_server.errors import AlreadyExists, InvalidInput, Unencodable, UnknownRun
from cbench_server.events import RowScored, RunAccepted, RunFinished, StateChanged
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.intents import Answer
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import (
    DatasetRef,
    EvaluatorRef,
    MetricRef,
    ModelRef,
    Run,
    RunSpec,
    RunState,
    SystemProgress,
    SystemRef,
    TlsRef,
)
from cbench_server.storage.schema import intents as intents_table
from cbench_server.storage.sql_store import SqlStore
from tests.fixtures.stores import Place

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]


async def test_a_run_comes_back_whole_after_reopening(place: Place) -> None:
    options = {"n": 2**63 + 1, "f": 1.0, "none": None, "deep": {"list": [1, "1", b"1", True]}}
    spec = RunSpec(
        systems=(
            SystemRef(name="a", target="localhost:1", options=options, tls=TlsRef("pem", "host")),
            SystemRef(proxy=ModelRef("http://x", "m", options={"temperature": 0})),
        ),
        datasets=(DatasetRef("qa", "short", 5, where={"k": "v"}),),
        evaluators=(EvaluatorRef("e", options=options),),
        metrics=(MetricRef("m", {"threshold": 0.5}),),
        labels={"team": "blue"},
        text_fields=("context",),
    )
    run = Run(
        "r1",
        spec,
        RunState.QUEUED,
        create_time=1.5,
        summary={"a": {"mean": 0.25, "none": None}},
        timing={"a": 1.5},
        failure=Failure("daemon", "X", "why", stack_trace="…"),
        waiting_reason="gone",
        parent_run_id="r0",
        config=options,
        request_id="q",
    )
    store = place.open()
    await store.create_run(run)
    await store.close()
    store = place.open()
    found = await store.get_run("r1")
    [event] = await store.read_events("r1", 0)
    await store.close()
    assert found.spec == spec
    assert found.config == options
    assert type(found.config["f"]) is float
    assert (found.summary, found.failure, found.last_seq) == (run.summary, run.failure, 1)
    assert isinstance(event.event, RunAccepted)
    assert event.event.run == found


async def test_an_undefined_number_in_a_spec_survives(store: SqlStore, make_run: MakeRun) -> None:
    await store.create_run(make_run(config={"x": math.nan, "y": math.inf}))
    config = (await store.get_run("r1")).config
    assert math.isnan(config["x"])
    assert config["y"] == math.inf


async def test_the_same_request_gives_the_same_run(store: SqlStore, make_run: MakeRun) -> None:
    first = await store.create_run(make_run("r1", request_id="q"))
    second = await store.create_run(make_run("r2", request_id="q"))
    assert second == first
    assert [run.run_id for run in await store.list_runs()] == ["r1"]


async def test_the_same_request_with_another_spec_is_refused(
    store: SqlStore, make_run: MakeRun
) -> None:
    await store.create_run(make_run("r1", request_id="q"))
    with pytest.raises(AlreadyExists, match="r1"):
        await store.create_run(make_run("r2", request_id="q", repeats=2))


async def test_runs_without_a_request_id_are_all_kept(store: SqlStore, make_run: MakeRun) -> None:
    await store.create_run(make_run("r1"))
    await store.create_run(make_run("r2"))
    with pytest.raises(AlreadyExists, match="r2"):
        await store.create_run(make_run("r2"))
    assert len(await store.list_runs()) == 2


async def test_an_unknown_run_is_named(store: SqlStore) -> None:
    for call in (
        store.get_run("nope"),
        store.append("nope", []),
        store.read_events("nope", 0),
        store.wait_for_events("nope", 0, 1.0),
        store.spooled("nope"),
        store.read_rows("nope"),
    ):
        with pytest.raises(UnknownRun, match="nope"):
            await call


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".hidden", "a\0b", "x" * 101])
async def test_a_run_id_that_could_be_a_path_is_refused(
    store: SqlStore, make_run: MakeRun, run_id: str
) -> None:
    with pytest.raises(InvalidInput):
        await store.create_run(make_run(run_id))
    with pytest.raises(UnknownRun):
        await store.owners.acquire(run_id)


async def test_runs_are_listed_newest_first_in_pages(store: SqlStore, make_run: MakeRun) -> None:
    for number in range(5):
        await store.create_run(make_run(f"r{number}"))
    first = await store.list_runs(limit=2)
    second = await store.list_runs(limit=2, before=first[-1].run_id)
    assert [run.run_id for run in first + second] == ["r4", "r3", "r2", "r1"]


async def test_runs_are_found_by_state_and_all_their_labels(
    store: SqlStore, make_run: MakeRun
) -> None:
    await store.create_run(make_run("r1", labels={'k"ey': "v", "x": "1"}))
    await store.create_run(make_run("r2", labels={'k"ey': "v", "x": "2"}))
    await store.create_run(make_run("r3", state=RunState.RUNNING))
    labelled = await store.list_runs(labels={'k"ey': "v", "x": "2"})
    running = await store.list_runs(states=[RunState.RUNNING, RunState.WAITING])
    assert [run.run_id for run in labelled] == ["r2"]
    assert [run.run_id for run in running] == ["r3"]


async def test_huge_labels_make_short_pages_and_hide_no_run(
    store: SqlStore, make_run: MakeRun
) -> None:
    for number in range(5):
        labels = {"huge": "x" * 3_000_000} if number != 2 else {}
        await store.create_run(make_run(f"r{number}", labels=labels))
    pages, before = [], None
    while not pages or before is not None:
        page = await store.page_runs(before=before, max_bytes=5_000_000)
        pages.append([run.run_id for run in page.runs])
        before = page.next_before
    assert pages == [["r4", "r3"], ["r2", "r1", "r0"]]
    assert len(await store.list_runs()) == 5


async def test_progress_counts_what_was_stored(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    await store.append("r1", [], update={"systems": ("b", "a")})
    rows = [make_row(0), make_row(1, failed=True), make_row(0, "b", reused=True), make_row(0)]
    await store.append("r1", [RowScored(row) for row in rows])
    run = await store.get_run("r1")
    assert run.progress == {"b": SystemProgress(1, 0, 1), "a": SystemProgress(2, 1, 0)}
    assert list(run.progress) == ["b", "a"]


async def test_total_rows_are_known_once_the_spool_is_complete(
    store: SqlStore, make_run: MakeRun, make_example: MakeExample
) -> None:
    await store.create_run(make_run(repeats=3))
    await store.add_examples("r1", [make_example(0), make_example(1)])
    assert (await store.get_run("r1")).total_rows is None
    assert await store.spooled("r1") == (2, False)
    await store.add_examples("r1", [make_example(1), make_example(2)], complete=True)
    assert (await store.get_run("r1")).total_rows == 3 * 2 * 3
    assert await store.spooled("r1") == (3, True)


async def test_an_update_is_stored_together_with_its_events(
    store: SqlStore, make_run: MakeRun
) -> None:
    run = await store.create_run(make_run())
    seq = await store.append(
        "r1", [StateChanged(RunState.RUNNING)], update={"state": RunState.RUNNING}
    )
    assert (seq, (await store.get_run("r1")).state) == (2, RunState.RUNNING)
    changes = {"state": RunState.SUCCEEDED, "end_time": 200.0, "summary": {"a": {"m": 1.0}}}
    assert await store.append("r1", [RunFinished(run)], update=changes) == 3
    found = await store.get_run("r1")
    assert (found.state, found.end_time, found.summary) == tuple(changes.values())


async def test_what_may_not_be_updated_is_refused(store: SqlStore, make_run: MakeRun) -> None:
    await store.create_run(make_run())
    with pytest.raises(ValueError, match="last_seq"):
        await store.append("r1", [], update={"last_seq": 7})


async def test_an_update_that_has_no_stored_form_spoils_nothing_else(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    with pytest.raises(Unencodable, match=r"run\.config\.x"):
        await store.append("r1", [RowScored(make_row(0))], update={"config": {"x": {1, 2}}})
    assert (await store.get_run("r1")).last_seq == 1


async def test_an_intent_stays_until_it_is_answered_and_the_answer_until_it_is_read(
    store: SqlStore, make_run: MakeRun
) -> None:
    intents = store.intents
    first = await intents.ask("r1", "cancel", {})
    second = await intents.ask("r\u00e92", "resume", {"budget_usd": 1.5})
    assert [(each.run_id, each.kind, each.arguments) for each in await intents.unanswered()] == [
        ("r1", "cancel", {}),
        ("r\u00e92", "resume", {"budget_usd": 1.5}),
    ]
    assert await intents.answer_to(first) is None
    one, two = await intents.unanswered()
    await intents.answer(one, Answer())
    await intents.answer(two, Answer("it has succeeded"))
    assert await intents.unanswered() == []
    assert await intents.answer_to(second) == Answer("it has succeeded")
    assert await intents.answer_to(first) == Answer()
    # Who asks once more has waited too long for what was kept.
    assert await intents.answer_to(first) == Answer()


@pytest.mark.parametrize("column", [column.name for column in intents_table.c])
async def test_an_intent_that_is_damaged_is_not_found(
    store: SqlStore, place: Place, column: str
) -> None:
    for run_id in ("r1", "r2"):
        await store.intents.ask(run_id, "cancel", {})
    other = {"run_id": "'r3'", "kind": "'delete'", "id": "99", "time": "time + 1"}
    # An empty list, where an empty map was.
    other["arguments"] = "x'90'" if place.is_sqlite else "'\\x90'::bytea"
    other |= {"answer": "arguments", "sum": "sum + 1"}
    place.sql(f"UPDATE intents SET {column} = {other[column]} WHERE run_id = 'r1'")
    assert [each.run_id for each in await store.intents.unanswered()] == ["r2"]


@pytest.mark.parametrize("column", ["id", "run_id", "answer", "sum"])
async def test_a_damaged_answer_is_not_told(store: SqlStore, place: Place, column: str) -> None:
    number = await store.intents.ask("r1", "cancel", {})
    [intent] = await store.intents.unanswered()
    await store.intents.answer(intent, Answer("no"))
    [(stored,)] = place.sql("SELECT answer FROM intents")
    changed = bytes(stored).replace(b"no", b"nn").hex()
    value = f"x'{changed}'" if place.is_sqlite else f"'\\x{changed}'::bytea"
    other = {"id": "99", "run_id": "'r3'", "answer": value, "sum": "sum + 1"}[column]
    place.sql(f"UPDATE intents SET {column} = {other}")
    assert await store.intents.answer_to(number) == Answer()
    if column == "id":
        assert await store.intents.answer_to(99) == Answer()
