"""Replicas: rows per second of four processes that take one call at a time, against one of them.

`python benchmarks/replicas.py [--rows N]` prints both and their ratio, of one run each.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

from cbench_client import BenchClient, serve
from cbench_server.daemon.embedded import embedded

SLEEP_S = 0.02
REPLICAS = 4


class Sleeper:
    """Takes 20 ms, and one call at a time."""

    name = "sleeper"
    version = "1"
    max_concurrency = 1

    def process(self, example: dict[str, object]) -> dict[str, object]:
        """Sleep and answer."""
        time.sleep(SLEEP_S)
        return {**example, "response": "a"}


def start(stack: ExitStack) -> str:
    """Start one process, and return where it listens."""
    command = [sys.executable, __file__, "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    return process.stdout.readline().strip().rpartition("|")[2]


def rows_per_second(client: BenchClient, addresses: list[str], digest: str) -> float:
    """Run over all rows, and count those that came after the last one timed alone."""
    spec = {
        "systems": [{"target": addresses[0], "replicas": addresses[1:]}],
        "datasets": [{"name": "given", "upload": digest}],
        "asked_again": 0,
    }
    count, started, ended = 0, 0.0, 0.0
    for event in client.evaluate(spec, include_rows=True):
        if event.HasField("finished") and event.finished.HasField("failure"):
            raise SystemExit(event.finished.failure.message)
        if event.HasField("row"):
            ended = event.create_time.ToNanoseconds() / 1e9
            count += 1
            # Calls that warm a process up are not timed, and stand among those that are.
            if event.row.alone:
                count, started = 0, ended
    return count / (ended - started)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve([Sleeper()])
        return
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        client = stack.enter_context(BenchClient(stack.enter_context(embedded(home=home))))
        addresses = [start(stack) for _ in range(REPLICAS)]
        rows = [
            {"id": str(n), "context": "c", "question": "q", "answer": "a"} for n in range(args.rows)
        ]
        digest, _ = client.upload(rows)
        one = rows_per_second(client, addresses[:1], digest)
        all_of_them = rows_per_second(client, addresses, digest)
        print(f"one process     {one:8.1f} rows/s")
        print(f"{REPLICAS} replicas      {all_of_them:8.1f} rows/s")
        print(f"ratio           {all_of_them / one:8.2f}")


if __name__ == "__main__":
    main()
