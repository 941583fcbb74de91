"""Memory, speed and space of one run over many rows, which should all be level.

    python benchmarks/large_run.py [--rows 10000000] [--shards 100] [--points 10]

A dataset is generated into compressed shards, named in the daemon's configuration and read by
it once, in order. A built-in system answers, so that nothing but the daemon is measured. Of its
memory the resident part is printed at equal distances, with the rows per second between them and
the bytes that the store has grown for each row.
"""

import argparse
import gzip
import json
import time
from pathlib import Path

from parts import Program, make_examples, programs, scratch, start_daemon, table

from cbench_client import BenchClient

_LOOK_S = 0.5
_CONTEXT_BYTES = 60


def write_shards(folder: Path, rows: int, shards: int) -> None:
    """Write examples with short contexts, no two of them the same."""
    folder.mkdir()
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
    return lines


def main() -> None:
    """Generate, run, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--points", type=int, default=10)
    args = parser.parse_args()
    with scratch() as folder:
        home, shards = Path(folder) / "home", Path(folder) / "shards"
        write_shards(shards, args.rows, args.shards)
        config = Path(folder) / "cbench.toml"
        config.write_text(f'[data.many]\nurl = "file://{shards}"\n')
        flags = ["--config", str(config)]
        with (
            programs(start_daemon(str(home), flags=flags)) as (daemon,),
            BenchClient(daemon.address) as client,
        ):
            print(f"before the run: {daemon.memory_mb():.0f} MB", flush=True)
            lines = follow(daemon, client, home, args.rows, args.points)
    titles = ["rows", "resident", "peak", "rows/s", "CPU per row", "stored per row"]
    print(table(titles, lines))


if __name__ == "__main__":
    main()
