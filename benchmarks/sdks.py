"""Rows per second and latency of each SDK: unary, streamed and attached, on one daemon.

    python benchmarks/sdks.py [--rows 2000] [--repeats 3] [--languages python,node,go,rust]

Each SDK's conformance program answers `conformance-echo`; everything else, the daemon with its
scoring and storing included, is the same for all. Builds what is not built.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from parts import Program, make_examples, programs, scratch, table

from cbench_client import BenchClient

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))
from example_systems import (
    CLIENTS,
    WITHOUT_COMPILER,
    ExampleSystem,
    NotBuilt,
    build,
)

DAEMON = Path(__file__).with_name("unary_daemon.py")
ECHO = "conformance-echo"
IN_FLIGHT = 16
SIZES = (1_000, 64_000)
TRANSPORTS = ("unary", "stream", "attach")
ATTACH_SECONDS = 30

(NODE,) = (each for each in WITHOUT_COMPILER if each.language == "Node")
CARGO = ("cargo", "build", "--quiet", "--locked", "--release", "--example", "conformance")
PROGRAMS = {
    "python": ExampleSystem(
        ECHO, "Python", (sys.executable, str(CLIENTS / "python" / "conformance" / "program.py"))
    ),
    "node": replace(NODE, program=("node", str(CLIENTS / "node" / "conformance" / "program.js"))),
    "go": ExampleSystem(
        name=ECHO,
        language="Go",
        program=(str(CLIENTS / "go" / "bin" / "conformance"),),
        tools=("go",),
        folder=CLIENTS / "go",
        build=(("go", "build", "-o", "bin/", "./conformance"),),
    ),
    "rust": ExampleSystem(
        name=ECHO,
        language="Rust",
        program=(str(CLIENTS / "rust" / "target/release/examples/conformance"),),
        tools=("cargo",),
        folder=CLIENTS / "rust",
        build=(CARGO,),
    ),
}


class Measured(NamedTuple):
    """What one run gave: rows per second, and the latency of each row in milliseconds."""

    rate: float
    latencies: list[float]


@contextmanager
def attached(program: Sequence[str], daemon: Program, client: BenchClient) -> Iterator[None]:
    """Attach a program, and wait until the daemon knows it, and afterwards until it does not."""
    process = subprocess.Popen([*program, "--attach", daemon.address], stderr=subprocess.DEVNULL)
    try:
        _wait_until_listed(client, True)
        yield
    finally:
        process.kill()
        process.wait()
        _wait_until_listed(client, False)


def _wait_until_listed(client: BenchClient, is_wanted: bool) -> None:
    deadline = time.monotonic() + ATTACH_SECONDS
    while any(each.name == ECHO for each in client.components().systems) is not is_wanted:
        if time.monotonic() > deadline:
            raise SystemExit(f"the daemon's list of attached systems stays wrong about {ECHO}")
        time.sleep(0.05)


def measure(client: BenchClient, system: dict[str, Any], digest: str, rows: int) -> Measured:
    """Run the echo over an uploaded dataset, and follow it to its end."""
    spec = {
        "systems": [system],
        "datasets": [{"name": "bench", "upload": digest, "max_examples": rows}],
        "evaluators": [{"name": "answer-quality"}],
        "replace_evaluators": True,
        "max_concurrency": IN_FLIGHT,
    }
    latencies = []
    started = time.perf_counter()
    for event in client.evaluate(spec):
        if event.HasField("row"):
            assert not event.row.HasField("failure"), event.row.failure
            latencies.append(event.row.latency.ToTimedelta().total_seconds() * 1e3)
    assert len(latencies) == rows
    return Measured(rows / (time.perf_counter() - started), latencies)


def measure_all(languages: list[str], rows: int, repeats: int) -> dict[Any, list[Measured]]:
    """Measure every language by every transport at every size, each in turn, and repeat."""
    found: dict[Any, list[Measured]] = defaultdict(list)
    with (
        scratch() as home,
        programs(Program(sys.executable, str(DAEMON), home)) as (daemon,),
        BenchClient(daemon.address) as client,
    ):
        counts = {size: max(100, min(rows, rows * 10_000 // size)) for size in SIZES}
        digests = {size: client.upload(make_examples(counts[size], size))[0] for size in SIZES}
        for language in languages * repeats:
            program = PROGRAMS[language].program
            with programs(Program(*program)) as (served,), attached(program, daemon, client):
                port = served.address.rpartition(":")[2]
                systems = {
                    # The daemon of this benchmark calls what it knows as localhost one by one.
                    "unary": {"target": f"localhost:{port}", "served_name": ECHO},
                    "stream": {"target": served.address, "served_name": ECHO},
                    "attach": {"attached": ECHO},
                }
                for transport in TRANSPORTS:
                    for size in SIZES:
                        measure(client, systems[transport], digests[size], 50)
                        measured = measure(client, systems[transport], digests[size], counts[size])
                        found[size, transport, language].append(measured)
    return found


def those_built(names: list[str]) -> Iterator[str]:
    """Build each language's program, and say which are skipped, and why."""
    with scratch() as folder:
        for name in names:
            try:
                build(PROGRAMS[name], Path(folder) / "build.log", say)
            except NotBuilt as reason:
                say(f"{name} is skipped: {reason}")
            else:
                yield name


def say(text: str) -> None:
    """Tell a person; stdout is for the table alone."""
    print(text, file=sys.stderr, flush=True)


def cell(measured: list[Measured]) -> str:
    """Show the median rate, and the latencies of all rows."""
    rate = statistics.median(each.rate for each in measured)
    cuts = statistics.quantiles([ms for each in measured for ms in each.latencies], n=100)
    return f"{rate:,.0f} ({cuts[49]:.1f}, {cuts[98]:.1f})"


def main() -> None:
    """Build, measure, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--languages", default=",".join(PROGRAMS))
    given = parser.parse_args()
    names = given.languages.split(",")
    if unknown := [name for name in names if name not in PROGRAMS]:
        parser.error(f'no language "{unknown[0]}"; there are {", ".join(PROGRAMS)}')
    languages = list(those_built(names))
    found = measure_all(languages, given.rows, given.repeats)
    lines = [
        [f"{size:,} B", transport]
        + [cell(found[size, transport, language]) for language in languages]
        for size in SIZES
        for transport in TRANSPORTS
    ]
    print(table(["context", "transport", *languages], lines))


if __name__ == "__main__":
    main()
