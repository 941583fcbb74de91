"""Makes a small store with whatever version runs this, to be kept as a fixture.

    python -m tests.compatibility.make_store FOLDER

It leaves `home/` (runs that are done, one rescored, and two that were killed
half-way), `cache/` (rows of `evaluate`) and `expected.json`: what this version
reads back from them.
"""

import json
import shutil
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

from cbench_client import Attachment, BenchClient, row_to_dict
from tests.compatibility.systems import CachedSystem, Keeper, Notebook, cached_rows
from tests.e2e.processes import DaemonProcess, wait_until

EXAMPLES: list[dict[str, Any]] = [
    {
        "id": number if number % 5 == 0 else f"e{number}",
        "context": f"Fact {number} is that the code word is w{number}. Nothing else matters here.",
        "question": f"What is the code word of fact {number}?",
        "answer": f"w{number}",
        "group": f"g{number // 4}",
        "score": number / 2,
        "tags": ["x", {"deep": [number, None, True, b"\0\1"]}],
    }
    for number in range(24)
]
CONVERSATIONS: list[dict[str, Any]] = [
    {
        "id": f"c{number}",
        "turns": [
            {"role": "user", "content": f"item {number}.{place} is v{number}{place}"}
            for place in range(3)
        ],
        "qa_pairs": [
            {
                "question": f"what is item {number}.{place}?",
                "answer": f"v{number}{place}",
                "type": "even" if place % 2 == 0 else "odd",
            }
            for place in range(3)
        ],
    }
    for number in range(5)
]


class Halting:
    """Lets some calls through, and keeps the others until the end."""

    def __init__(self, calls: int) -> None:
        self._left = calls
        self.is_reached = threading.Event()

    def __call__(self) -> None:
        self._left -= 1
        if self._left < 0:
            self.is_reached.set()
            threading.Event().wait()


def main(folder: Path) -> None:
    home = folder / "home"
    runs: dict[str, str] = {}
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        examples, _ = client.upload(EXAMPLES)
        talks, _ = client.upload(CONVERSATIONS)
        process = {
            "systems": [
                {"attached": "keeper", "options": {"words": 9}},
                {"builtin": "truncate-tail", "options": {"ratio": 0.5}},
            ],
            "datasets": [{"name": "given", "upload": examples}],
            "labels": {"team": "red"},
            "repeats": 2,
            "max_concurrency": 2,
        }
        memory = {
            "kind": "memory",
            "systems": [{"attached": "notebook"}],
            "datasets": [{"name": "talks", "upload": talks}],
            "query_budget": 100,
        }
        with Attachment([Keeper(), Notebook()], daemon.address) as attachment:
            attachment.wait_attached(60)
            runs["process"] = _finish(client, process)
            runs["memory"] = _finish(client, memory)
            evaluators = [{"name": "answer-quality"}]
            runs["rescored"] = client.rescore(runs["process"], evaluators=evaluators).run_id
            wait_until(lambda: client.get(runs["rescored"]).HasField("end_time"))
        halting = Halting(21)
        Attachment(Keeper(halting), daemon.address).start().wait_attached(60)
        runs["half_process"] = client.start({**process, "systems": process["systems"][:1]})
        assert halting.is_reached.wait(20)
        wait_until(lambda: client.get(runs["half_process"]).progress.completed_rows >= 20)
        halting = Halting(7)
        Attachment(Notebook(halting), daemon.address).start().wait_attached(60)
        runs["half_memory"] = client.start(memory)
        assert halting.is_reached.wait(20)
        wait_until(lambda: client.get(runs["half_memory"]).progress.completed_rows >= 5)
        expected = {name: read(client, run_id) for name, run_id in runs.items()}
        daemon.kill()
    with sqlite3.connect(home / "cbench.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    shutil.rmtree(home / "locks")
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cached_rows(CachedSystem(), EXAMPLES, str(cache))
    (folder / "expected.json").write_text(json.dumps(plain(expected)))


def _finish(client: BenchClient, spec: dict[str, Any]) -> str:
    for event in client.evaluate(spec):
        if event.HasField("finished"):
            return event.finished.run_id
    raise AssertionError("it did not finish")


def read(client: BenchClient, run_id: str) -> dict[str, Any]:
    run = client.get(run_id)
    rows = client.rows(run_id, include_processed=True, include_original=True)
    return {
        "run_id": run_id,
        "state": run.state,
        "last_sequence": run.last_sequence,
        "rows": [row_to_dict(row) for row in rows],
        "summaries": {each.system: dict(sorted(each.metrics.items())) for each in run.summaries},
    }


def plain(value: Any) -> Any:
    """Give what was read as JSON gives it back."""
    return json.loads(json.dumps(value, default=repr))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
