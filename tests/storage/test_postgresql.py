"""What a store in PostgreSQL has to itself: leases, a schema that others use, lost connections."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cbench_server.errors import (
    LostClaim,
    NotFound,
    StoreAway,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
)
from cbench_server.events import RowScored, StateChanged
from cbench_server.results import EvalRow
from cbench_server.spec import Run, RunState
from cbench_server.storage import postgresql_statements
from cbench_server.storage.sql_store import SqlStore
from tests.fixtures.commit_proxy import CommitProxy
from tests.fixtures.postgres import PASSWORD, PostgresServer, postgres_server
from tests.fixtures.stores import Place

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]

CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'cbench-server' AND pid <> pg_backend_pid()"
)


@pytest.fixture
def shared(postgres: PostgresServer, tmp_path: Path) -> Place:
    return Place(tmp_path / "home", postgres.new_store())


@pytest.fixture
async def one(shared: Place) -> AsyncIterator[SqlStore]:
    store = shared.open(lease_seconds=3.0)
    yield store
    await store.close()


@pytest.fixture
async def two(shared: Place) -> AsyncIterator[SqlStore]:
    store = shared.open(lease_seconds=3.0)
    yield store
    await store.close()


def described(place: Place) -> dict[str, list[Any]]:
    """Return all that a schema has, in words."""
    in_schema = "schemaname = current_schema()"
    columns = (
        # By their order: a column that was dropped leaves its number unused.
        "SELECT table_name, column_name, row_number() OVER (PARTITION BY table_name ORDER BY "
        "ordinal_position), data_type, is_nullable, column_default, collation_name FROM "
        "information_schema.columns WHERE table_schema = current_schema()"
    )
    constraints = (
        "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) "
        "FROM pg_constraint WHERE connamespace = current_schema()::regnamespace"
    )
    indexes = f"SELECT indexname::text, indexdef FROM pg_indexes WHERE {in_schema}"
    sequences = f"SELECT sequencename::text, data_type::text FROM pg_sequences WHERE {in_schema}"
    schema = place.sql("SELECT current_schema()::text")[0][0]
    return {
        query[:60]: sorted(str(row).replace(schema, "SCHEMA") for row in place.sql(query))
        for query in (columns, constraints, indexes, sequences)
    }


async def test_a_new_store_is_what_all_migrations_make_of_an_empty_one(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    from cbench_server.storage.postgres.address import read_address
    from cbench_server.storage.postgres.database import PostgresDatabase
    from cbench_server.storage.postgres.migrate import upgrade

    new, migrated = (Place(tmp_path, postgres.new_store()) for _ in range(2))
    await new.open().close()
    upgrade(PostgresDatabase(read_address(migrated.address)), "")
    assert described(migrated) == described(new)
    revision = "SELECT version_num FROM alembic_version"
    assert migrated.sql(revision) == new.sql(revision)
    await migrated.open().close()


async def test_a_store_of_another_revision_is_refused_and_upgraded_only_without_others(
    shared: Place, one: SqlStore
) -> None:
    shared.sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreTooNew, match="its schema is 9999.*Upgrade cbench-server"):
        shared.open()
    shared.sql("UPDATE alembic_version SET version_num = '0002'")
    with pytest.raises(StoreError, match=r"has schema 0002 and is in use.*Stop them"):
        shared.open()
    assert shared.sql("SELECT version_num FROM alembic_version") == [("0002",)]
    shared.sql(f"UPDATE alembic_version SET version_num = '{postgresql_statements.HEAD_REVISION}'")


async def test_a_former_owner_commits_nothing(
    one: SqlStore, two: SqlStore, shared: Place, make_run: MakeRun, make_row: MakeRow
) -> None:
    await one.create_run(make_run())
    claim = await one.owners.acquire("r1")
    assert claim is not None
    assert await two.owners.acquire("r1") is None
    await one.append("r1", [RowScored(make_row(0))], claim=claim)
    # As if it had slept: its lease lapses before it wakes up.
    shared.sql("UPDATE leases SET expires = 0")
    async with asyncio.timeout(60):
        while (taken := await two.owners.acquire("r1")) is None:
            shared.sql("UPDATE leases SET expires = 0")
    assert taken.epoch > claim.epoch
    with pytest.raises(LostClaim, match="another owner"):
        await one.append("r1", [RowScored(make_row(1))], claim=claim)
    with pytest.raises(LostClaim):
        await one.delete_run("r1", claim=claim)
    await two.append("r1", [RowScored(make_row(2))], claim=taken)
    async with asyncio.timeout(60):
        while await one.owners.renew(claim):
            await asyncio.sleep(0.05)
    await one.owners.release(claim)
    assert await two.owners.renew(taken)
    assert [row.ordinal for row in (await one.read_rows("r1")).rows] == [0, 2]


async def test_an_owner_who_comes_back_reads_what_others_stored_meanwhile(
    one: SqlStore, two: SqlStore, shared: Place, make_run: MakeRun, make_row: MakeRow
) -> None:
    await one.create_run(make_run())
    for ordinal, store in enumerate((one, two, one)):
        shared.sql("DELETE FROM leases")
        async with asyncio.timeout(60):
            while (claim := await store.owners.acquire("r1")) is None:
                await asyncio.sleep(0.05)
        assert await store.wait_for_events("r1", ordinal, 60)
        assert [each.seq for each in await store.read_events("r1", ordinal)] == [ordinal + 1]
        await store.append("r1", [RowScored(make_row(ordinal))], claim=claim)


async def test_an_epoch_that_is_given_twice_lets_a_former_owner_commit_nothing(
    one: SqlStore, two: SqlStore, shared: Place, make_run: MakeRun, make_row: MakeRow
) -> None:
    await one.create_run(make_run())
    claim = await one.owners.acquire("r1")
    assert claim is not None
    # As a standby that took over before it heard of the lease.
    shared.sql(f"SELECT setval('lease_epochs', {claim.epoch}, false)")
    shared.sql("DELETE FROM leases")
    taken = await two.owners.acquire("r1")
    assert taken == claim
    with pytest.raises(LostClaim, match="another owner"):
        await one.append("r1", [RowScored(make_row(0))], claim=claim)
    await two.append("r1", [RowScored(make_row(1))], claim=taken)
    await one.owners.release(claim)
    await two.append("r1", [RowScored(make_row(2))], claim=taken)
    assert [row.ordinal for row in (await two.read_rows("r1")).rows] == [1, 2]


async def test_the_same_request_at_two_daemons_at_once_gives_one_run(
    one: SqlStore, two: SqlStore, make_run: MakeRun
) -> None:
    for number in range(10):
        runs = await asyncio.gather(
            *(
                store.create_run(make_run(f"{name}{number}", request_id=f"q{number}"))
                for name, store in (("a", one), ("b", two))
            )
        )
        assert runs[0].run_id == runs[1].run_id
    assert len(await one.list_runs()) == 10


async def test_two_daemons_change_one_run_and_neither_change_is_lost(
    one: SqlStore, two: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await one.create_run(make_run())

    async def add(store: SqlStore, first: int) -> None:
        for ordinal in range(first, first + 40):
            await store.append("r1", [RowScored(make_row(ordinal))])

    async def pin() -> None:
        for number in range(41):
            await two.pin("r1", number % 2 == 0)

    await asyncio.gather(add(one, 0), add(two, 40), pin())
    events = await two.read_events("r1", 0)
    assert [each.seq for each in events] == list(range(1, 82))
    assert (await one.get_run("r1")).completed_rows == 80


async def test_texts_with_any_character_survive(one: SqlStore, make_run: MakeRun) -> None:
    odd = "a\0b\x1a0\x1a\x1a\0\x1a ü \U0001f600"
    labels = {odd: odd, "\x1a": "\0", "plain": ""}
    run = make_run(labels=labels, request_id=odd, config={"n": 2**63 + 1, "t": odd, "f": 5e-324})
    await one.create_run(run)
    found = await one.find_request(odd)
    assert found is not None
    assert (found.spec.labels, found.config) == (labels, run.config)
    assert [each.run_id for each in await one.list_runs(labels={odd: odd})] == ["r1"]


async def test_ids_are_ordered_by_their_bytes(one: SqlStore, make_run: MakeRun) -> None:
    names = ["B", "a", "A", "b", "a.b", "a-b", "aB", "a1"]
    for name in names:
        await one.create_run(make_run(name))
    page = await one.page_runs(limit=5)
    rest = await one.page_runs(limit=5, before=page.next_before)
    assert [run.run_id for run in page.runs + rest.runs] == sorted(names, reverse=True)


async def test_a_lost_connection_costs_nothing_but_time(
    one: SqlStore, postgres: PostgresServer, make_run: MakeRun, make_row: MakeRow
) -> None:
    await one.create_run(make_run())
    claim = await one.owners.acquire("r1")
    for ordinal in range(3):
        postgres.sql(CUT)
        await one.append("r1", [RowScored(make_row(ordinal))], claim=claim)
        postgres.sql(CUT)
        assert (await one.get_run("r1")).completed_rows == ordinal + 1
    assert len((await one.read_rows("r1")).rows) == 3


async def test_a_commit_whose_answer_is_lost_is_not_done_twice(
    shared: Place, postgres: PostgresServer, make_run: MakeRun
) -> None:
    """The connection is cut between a commit and its answer: by a proxy that swallows that."""
    async with CommitProxy(postgres.port) as proxy:
        through = Place(shared.home, shared.address.replace(f":{postgres.port}", f":{proxy.port}"))
        # The proxy is served by this loop, which opening blocks.
        store = await asyncio.to_thread(through.open)
        await store.create_run(make_run())
        proxy.lose_answer.set()
        change = {"state": RunState.RUNNING}
        await store.append("r1", [StateChanged(RunState.RUNNING)], update=change)
        assert not proxy.lose_answer.is_set()
        assert [each.seq for each in await store.read_events("r1", 0)] == [1, 2]
        await store.close()


async def test_a_commit_that_a_crash_undid_is_not_taken_for_another_of_its_number(
    tmp_path: Path, make_run: MakeRun
) -> None:
    with postgres_server() as server:
        async with CommitProxy(server.port) as proxy:
            address = server.new_store().replace(f":{server.port}", f":{proxy.port}")
            # The proxy is served by this loop, which opening blocks.
            store = await asyncio.to_thread(Place(tmp_path, address).open)
            await store.create_run(make_run())
            proxy.lose_commit.set()
            begun = [StateChanged(RunState.RUNNING)]
            change = {"state": RunState.RUNNING}
            writing = asyncio.ensure_future(store.append("r1", begun, update=change))
            await proxy.has_commit.wait()
            await asyncio.to_thread(crash_and_count_on, server)
            proxy.let_go.set()
            with pytest.raises(StoreAway):
                await writing
            assert (await store.get_run("r1")).state == RunState.QUEUED
            await store.append("r1", begun, update=change)
            assert [each.seq for each in await store.read_events("r1", 0)] == [1, 2]
            await store.close()


def crash_and_count_on(server: PostgresServer) -> None:
    """Crash it, and have others take the numbers of transactions that it forgot."""
    server.stop(signal.SIGQUIT)
    server.start()
    server.sql(
        "DO 'BEGIN FOR n IN 1..100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END'"
    )


async def test_uploads_are_found_by_every_daemon_and_checked(
    one: SqlStore, two: SqlStore, shared: Place, tmp_path: Path
) -> None:
    examples = [{"id": n, "text": f"{n} " * 40_000, "b": b"\0"} for n in range(30)]
    sent, found = (
        store.uploads(tmp_path / str(number), 0, 0) for number, store in enumerate((one, two))
    )
    for _ in range(2):
        with sent.writer() as writer:
            for example in examples:
                writer.add(example)
            digest = writer.finish()
    assert list(found.iterate(digest)) == examples
    assert found.count(digest) == 30
    assert list((tmp_path / "0" / "uploads").iterdir()) == []
    assert found.remove([digest]) == []
    with pytest.raises(NotFound):
        found.count("0" * 64)
    shared.sql("UPDATE upload_parts SET body = '\\x00' WHERE number = 0")
    with pytest.raises(StoreCorrupt, match="Upload the examples again"):
        list(found.iterate(digest))
    shared.sql("UPDATE uploads SET used = 0")
    assert found.unused() == [digest]
    assert found.remove([digest]) == [f"uploads/{digest}.examples"]
    assert shared.sql("SELECT count(*) FROM upload_parts") == [(0,)]
    for each in (sent, found):
        each.close()


def test_a_store_in_a_file_imports_neither_library(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from cbench_server.storage.opening import open_store\n"
        "async def use():\n"
        "    await open_store(Path(sys.argv[1])).close()\n"
        "asyncio.run(use())\n"
        "print([n for n in ('psycopg', 'sqlalchemy', 'alembic') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_messages_never_hold_the_password(postgres: PostgresServer) -> None:
    from cbench_server.storage.postgres.address import read_address

    address = read_address(postgres.address())
    assert PASSWORD not in repr(address) + address.name
    assert PASSWORD not in address.without_secrets(f"connecting with {PASSWORD} failed")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://u:p@one:1,two:2/x?target_session_attrs=any", "postgresql://one:1,two:2/x"),
        ("postgresql://one,two/x", "postgresql://one,two/x"),
        ("postgresql:///x?host=one,two&port=5", "postgresql://one:5,two:5/x"),
        ("postgresql:///x", "postgresql:///x"),
    ],
)
def test_a_store_is_called_by_its_hosts(address: str, name: str) -> None:
    from cbench_server.storage.postgres.address import read_address

    assert read_address(address).name == name
