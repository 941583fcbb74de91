"""Groups over RPC: rows carry them, also those whose answers are taken from an earlier run."""

from cbench_client import BenchClient

from .following import follow
from .processes import examples, start_system


def test_rows_that_are_reused_have_the_groups_of_the_new_run(client: BenchClient) -> None:
    given = [{**each, "level": str(number % 2)} for number, each in enumerate(examples(6))]
    digest, _ = client.upload(given)
    with start_system("echo") as system:
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        first = follow(client.evaluate(spec))
        second = follow(client.evaluate({**spec, "reuse": True, "group_by": ["level"]}))
    assert [dict(row.groups) for row in first.rows] == [{}] * 6
    assert sorted(row.groups["level"] for row in second.rows) == ["0"] * 3 + ["1"] * 3
    assert all(row.reused for row in second.rows)
    rows = client.rows(second.finished.run_id)
    assert [row.groups["level"] for row in rows] == ["0", "1"] * 3
