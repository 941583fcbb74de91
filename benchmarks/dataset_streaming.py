"""Memory while a large JSONL file is read, shuffled, and evaluated, against a small file.

python benchmarks/dataset_streaming.py [--megabytes 1000] [--small 10]
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from parts import programs, scratch, start_daemon, table

_PEAK = """
import sys
from pathlib import Path
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("VmHWM"))
"""
_READ = """
from cbench_server.datasets import iterate_file
for _ in iterate_file(Path(sys.argv[1])): pass
print(peak())
"""
_SHUFFLE = """
from cbench_server.datasets import iterate_file
from cbench_server.datasets.shuffle import shuffled
for _ in shuffled(iterate_file(Path(sys.argv[1])), 1): pass
print(peak())
"""
_RUN = """
from cbench_server.cli import main
code = main(["run", "--server", sys.argv[2], "--builtin", "identity", "--dataset", sys.argv[1]])
print(peak())
sys.exit(code)
"""


def write_file(path: Path, megabytes: int) -> None:
    """Write examples of about 10 kB, no two of them the same."""
    size, number = 0, 0
    with path.open("w") as stream:
        while size < megabytes * 1_000_000:
            words = " ".join(f"w{(number * 7919 + place * 31) % 9973}" for place in range(1_700))
            example = {"id": number, "context": words, "question": "Which?", "answer": words[:5]}
            size += stream.write(json.dumps(example) + "\n")
            number += 1


def child(program: str, *arguments: str) -> tuple[float, float]:
    """Run a program, and return its peak memory in MB and its seconds."""
    started = time.perf_counter()
    command = [sys.executable, "-c", _PEAK + program, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024, time.perf_counter() - started


def measure(path: Path, home: str) -> list[str]:
    """Measure one file: peaks of reading, shuffling, and both sides of a run."""
    read, read_s = child(_READ, str(path))
    shuffle, _ = child(_SHUFFLE, str(path))
    with programs(start_daemon(home)) as (daemon,):
        client, run_s = child(_RUN, str(path), daemon.address)
        served = daemon.memory_mb("VmHWM")
    megabytes = path.stat().st_size / 1_000_000
    peaks = [f"{mb:.0f} MB" for mb in (read, shuffle, client, served)]
    return [f"{megabytes:,.0f} MB", *peaks, f"{megabytes / read_s:,.0f} MB/s", f"{run_s:,.0f} s"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--small", type=int, default=10)
    arguments = parser.parse_args()
    lines = []
    for megabytes in (arguments.small, arguments.megabytes):
        with scratch() as home:
            path = Path(home) / "large.jsonl"
            write_file(path, megabytes)
            lines.append(measure(path, home))
    header = ["file", "read", "shuffled", "run: client", "run: daemon", "reading", "run"]
    print(table(header, lines))


if __name__ == "__main__":
    main()
