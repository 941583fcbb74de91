"""Durability: the daemon is killed again and again, and lost or repeated work is counted.

    python benchmarks/durability.py [--rows 10000] [--kills 20]

The daemon is ended with SIGKILL at random moments while a client follows one
run; each time it is started again on the same store and port.
"""

import argparse
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from parts import make_examples, programs, scratch, start_daemon, start_echo

from cbench_client import BenchClient

IN_FLIGHT = 32


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    port = free_port()
    sequences: list[int] = []
    finished: list[str] = []

    with scratch() as home, tempfile.NamedTemporaryFile() as log:
        daemon = start_daemon(home, port)
        with (
            programs(start_echo("stream", 0.002, log=log.name)) as (echo,),
            BenchClient(f"127.0.0.1:{port}") as client,
        ):
            digest, _ = client.upload(make_examples(arguments.rows, 400))
            spec = {
                "systems": [{"target": echo.address}],
                "datasets": [{"name": "bench", "upload": digest}],
                "max_concurrency": IN_FLIGHT,
            }

            def follow() -> None:
                for event in client.evaluate(spec):
                    if event.sequence:
                        sequences.append(event.sequence)
                    if event.HasField("finished"):
                        finished.append(event.finished.run_id)

            watcher = threading.Thread(target=follow)
            watcher.start()
            step = arguments.rows // (arguments.kills + 1)
            for _ in range(arguments.kills):
                goal = len(sequences) + chance.randrange(step // 2, step)
                while len(sequences) < goal and not finished:
                    time.sleep(0.001)
                daemon.kill()
                daemon = start_daemon(home, port)
            watcher.join()
            stored = Counter(row.ordinal for row in client.rows(finished[0]))
            daemon.kill()
        calls = len(Path(log.name).read_text().split())

    repeated = calls - arguments.rows
    allowed = arguments.kills * (IN_FLIGHT + IN_FLIGHT // 2)
    print(f"kills: {arguments.kills}")
    copies = max(stored.values())
    print(f"stored keys: {len(stored)} of {arguments.rows}, most copies of one: {copies}")
    print(f"sequences seen once and in order: {sequences == list(range(1, len(sequences) + 1))}")
    print(
        f"calls repeated: {repeated}; {repeated / (arguments.kills * IN_FLIGHT):.2f} of kills x "
        f"{IN_FLIGHT} in flight (bound: {allowed}, in flight or answered and not yet stored)"
    )
    whole = len(stored) == arguments.rows and copies == 1
    sys.exit(0 if whole and repeated <= allowed else 1)


if __name__ == "__main__":
    main()
