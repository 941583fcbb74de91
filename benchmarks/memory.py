"""The daemon's memory with a client that reads ten rows per second, and its restart.

    python benchmarks/memory.py [--slow-rows 100000] [--resume-rows 20000]

curves.py has its memory by the number of rows.
"""

import argparse
import socket
import threading
import time

from parts import Program, make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient


def spec_of(client: BenchClient, echo: Program, rows: int, size: int) -> dict[str, object]:
    digest, _ = client.upload(make_examples(rows, size))
    return {
        "systems": [{"target": echo.address}],
        "datasets": [{"name": "bench", "upload": digest}],
        "max_concurrency": 64,
    }


def slow_client(count: int) -> str:
    """Growth of the daemon over `count` rows of 10 kB while a client reads ten per second."""
    with (
        scratch() as home,
        programs(start_daemon(home), start_echo("stream")) as (daemon, echo),
        BenchClient(daemon.address) as client,
    ):
        spec = spec_of(client, echo, count, 10_000)
        warm = {**spec, "datasets": [{**spec["datasets"][0], "max_examples": 500}]}  # type: ignore[index]
        list(client.evaluate(warm))
        before = daemon.memory_mb()
        run_id = client.start(spec)
        stop = threading.Event()

        def read_slowly() -> None:
            for event in client.watch(run_id):
                if event.WhichOneof("kind") == "row" and stop.wait(0.1):
                    return

        reader = threading.Thread(target=read_slowly)
        reader.start()
        started, highest = time.perf_counter(), before
        while not client.get(run_id).HasField("end_time"):
            highest = max(highest, daemon.memory_mb())
            time.sleep(0.2)
        elapsed = time.perf_counter() - started
        stop.set()
        reader.join()
    rate = f"{count / elapsed:,.0f} rows/s"
    line = [
        f"{count:,}",
        f"{before:.0f} MB",
        f"{highest:.0f} MB",
        f"{highest - before:.0f} MB",
        rate,
    ]
    return table(["rows of 10 kB", "before", "highest", "growth", "speed of the run"], [line])


def resume(count: int) -> str:
    """Seconds from starting a daemon to the first new row of a half-done run."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with scratch() as home:
        daemon = start_daemon(home, port)
        with (
            programs(start_echo("stream")) as (echo,),
            BenchClient(daemon.address) as client,
        ):
            run_id = client.start(spec_of(client, echo, count, 400))
            while client.get(run_id).progress.completed_rows < count // 2:
                time.sleep(0.01)
            daemon.kill()
            started = time.perf_counter()
            daemon = start_daemon(home, port)
            listening = time.perf_counter() - started
            done = client.get(run_id).progress.completed_rows
            while client.get(run_id).progress.completed_rows == done:
                time.sleep(0.005)
            first_row = time.perf_counter() - started
        daemon.kill()
    line = [f"{done:,} of {count:,}", f"{listening:.2f} s", f"{first_row - listening:.2f} s"]
    return table(["rows done", "start to listening", "listening to first new row"], [line])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow-rows", type=int, default=100_000)
    parser.add_argument("--resume-rows", type=int, default=20_000)
    arguments = parser.parse_args()
    print(resume(arguments.resume_rows), end="\n\n")
    print(slow_client(arguments.slow_rows))


if __name__ == "__main__":
    main()
