"""Memory, speed and space of one run over many rows, which should all be level.

    python benchmarks/large_run.py [--rows 10000000] [--shards 100] [--points 10] [--home FOLDER]

A dataset is generated into compressed shards, named in the daemon's configuration and read by
it once, in order. A built-in system answers, so that nothing but the daemon is measured. Of its
memory the resident part is printed at equal distances, with the rows per second between them and
the bytes that the store has grown for each row. Then the run is waited for: its summary is made
by a program of its own, whose memory counts as well. All are looked at every two seconds.
"""

import argparse
import gzip
import json
import threading
import time
from contextlib import nullcontext
from pathlib import Path

from parts import Program, make_examples, programs, scratch, start_daemon, table

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2 as pb

_LOOK_S = 0.5
_SAMPLE_S = 2.0
_CONTEXT_BYTES = 60


class Sampler(threading.Thread):
    """Looks at the memory of a daemon and of the programs that it starts, until it is stopped."""

    def __init__(self, daemon: Program) -> None:
        super().__init__(daemon=True)
        self._daemon = daemon
        self._stopped = threading.Event()
        self.looks: list[tuple[float, float, float]] = []
        """When, of the daemon, and of its programs, in MB."""

    def run(self) -> None:
        while not self._stopped.wait(_SAMPLE_S):
            own, children = self._daemon.memory_mb(), _memory_of_children(self._daemon.process.pid)
            self.looks.append((time.time(), own, children))

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def told(self) -> str:
        """Say what was seen, leaving out how the daemon warmed up."""
        warm = sorted(own for _, own, _ in self.looks[len(self.looks) // 10 :])
        most = max(children for _, _, children in self.looks)
        return (
            f"{len(self.looks):,} looks; after the first tenth of them the daemon was at "
            f"{warm[0]:.0f} to {warm[-1]:.0f} MB, in the median {warm[len(warm) // 2]:.0f} MB; "
            f"its programs took {most:.0f} MB at most"
        )


def _memory_of_children(parent: int) -> float:
    """Return the resident MB of all programs below a process."""
    total, parents = 0.0, [parent]
    while parents:
        path = Path(f"/proc/{parents.pop()}/task")
        for thread in path.glob("*/children"):
            try:
                found = thread.read_text().split()
                pages = [Path(f"/proc/{each}/statm").read_text().split()[1] for each in found]
            except OSError:
                continue
            total += sum(int(each) * 4096 / 2**20 for each in pages)
            parents += [int(each) for each in found]
    return total


def write_shards(folder: Path, rows: int, shards: int) -> None:
    """Write examples with short contexts, no two of them the same."""
    folder.mkdir(parents=True)
    examples = make_examples(rows, _CONTEXT_BYTES)
    for number in range(shards):
        share = rows * (number + 1) // shards - rows * number // shards
        path = folder / f"part-{number:05}.jsonl.gz"
        with gzip.open(path, "wt", compresslevel=1) as stream:
            for _ in range(share):
                stream.write(json.dumps(next(examples)) + "\n")


def follow(
    daemon: Program, client: BenchClient, home: Path, rows: int, points: int
) -> list[list[str]]:
    """Run over all rows; return one line for each point."""
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [{"name": "many"}],
        "evaluators": [{"name": "answer-quality"}],
        "replace_evaluators": True,
        "anchors": False,
        "timed_rows": 0,
        "asked_again": 0,
    }
    run_id = client.start(spec)
    lines: list[list[str]] = []
    then, before, cpu_before = time.perf_counter(), 0, daemon.cpu_seconds
    while before < rows:
        time.sleep(_LOOK_S)
        run = client.get(run_id)
        if run.HasField("failure"):
            raise SystemExit(run.failure.message)
        done = run.progress.completed_rows
        if done < rows * (len(lines) + 1) // points:
            continue
        now, cpu = time.perf_counter(), daemon.cpu_seconds
        stored = sum(path.stat().st_size for path in home.glob("cbench.db*"))
        lines.append(
            [
                f"{done:,}",
                f"{daemon.memory_mb():.0f} MB",
                f"{daemon.memory_mb('VmHWM'):.0f} MB",
                f"{(done - before) / (now - then):,.0f}",
                f"{(cpu - cpu_before) / (done - before) * 1e6:.0f} us",
                f"{stored / done:,.0f} B",
            ]
        )
        print("| " + " | ".join(lines[-1]) + " |", flush=True)
        then, before, cpu_before = now, done, cpu
    since = time.perf_counter()
    while (run := client.get(run_id)).state == pb.RUN_STATE_RUNNING:
        time.sleep(_LOOK_S)
    state, seconds = pb.RunState.Name(run.state), time.perf_counter() - since
    print(f"{state} with {run.progress.completed_rows:,} rows, {seconds:.0f} s after the last one")
    return lines


def main() -> None:
    """Generate, run, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--home", help="keep everything in this folder")
    args = parser.parse_args()
    with nullcontext(args.home) if args.home else scratch() as folder:
        home, shards = Path(folder) / "home", Path(folder) / "shards"
        if not shards.exists():
            write_shards(shards, args.rows, args.shards)
        config = Path(folder) / "cbench.toml"
        config.write_text(f'[data.many]\nurl = "file://{shards}"\n')
        flags = ["--config", str(config)]
        with (
            programs(start_daemon(str(home), flags=flags)) as (daemon,),
            BenchClient(daemon.address) as client,
        ):
            print(f"before the run: {daemon.memory_mb():.0f} MB", flush=True)
            sampler = Sampler(daemon)
            sampler.start()
            lines = follow(daemon, client, home, args.rows, args.points)
            sampler.stop()
    titles = ["rows", "resident", "peak", "rows/s", "CPU per row", "stored per row"]
    print(table(titles, lines))
    print(sampler.told())


if __name__ == "__main__":
    main()
