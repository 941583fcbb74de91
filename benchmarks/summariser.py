"""A real summariser (sumy) at default settings: rows lost, and its time against a bare loop.

    pip install sumy
    CBENCH_DATA_DIR=FOLDER python benchmarks/summariser.py [--split train] [--rows 60]

Numeric libraries bring threads of their own, so that many calls at once ruin each
other; such a system once lost 37 of 60 rows to timeouts that we had caused. Each
method is served by the Python SDK and run as a stranger would, and then timed in a
loop without cbench before and after, on the examples that were timed alone; where these
two differ by more than 5 %, once more. Aims: no row lost, the table's p50 within 15 % of
the loop's.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from parts import Program, between, programs, scratch, start_daemon, table, verdict

from cbench_client import BenchClient, serve
from cbench_server.registry import load_dataset

METHODS = {
    "lsa": "LsaSummarizer",
    "lex_rank": "LexRankSummarizer",
    "text_rank": "TextRankSummarizer",
}


class Words:
    """Sentences and words by rule, since sumy's own tokenizer wants a download."""

    def to_sentences(self, text: str) -> list[str]:
        return [part for part in re.split(r"(?<=[.!?])\s+", text) if part]

    def to_words(self, sentence: str) -> list[str]:
        return re.findall(r"[\w'-]+", sentence)


class Summariser:
    """Keeps the six sentences that a method of sumy chooses."""

    version = "1"

    def __init__(self, method: str) -> None:
        import importlib

        from sumy.parsers.plaintext import PlaintextParser

        self.name = f"sumy-{method.replace('_', '')}"
        module = importlib.import_module(f"sumy.summarizers.{method}")
        self._summarise = getattr(module, METHODS[method])()
        self._parse: Callable[[str, Any], Any] = PlaintextParser.from_string

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        document = self._parse(example["context"], Words()).document
        kept = self._summarise(document, 6)
        return {**example, "context": " ".join(str(sentence) for sentence in kept)}


def loop(method: str) -> None:
    """Time each example of stdin in a bare loop, after one call that warms up; print the median."""
    system = Summariser(method)
    examples = [json.loads(line) for line in sys.stdin]
    system.process(dict(examples[0]))
    taken = []
    for example in examples:
        started = time.perf_counter()
        system.process(dict(example))
        taken.append(time.perf_counter() - started)
    print(statistics.median(taken))


def bare(method: str, examples: list[dict[str, Any]]) -> float:
    """The same in a process of its own."""
    lines = "\n".join(json.dumps(example) for example in examples)
    command = [sys.executable, __file__, "loop", method]
    return float(subprocess.run(command, input=lines, stdout=-1, text=True, check=True).stdout)


def rows_of(client: BenchClient, address: str, dataset: dict[str, Any], rows: int) -> str:
    """Run one method at default settings; return the run's id."""
    refs = [{**dataset, "max_examples": rows}]
    run_id = client.start({"systems": [{"target": address}], "datasets": refs})
    for _ in client.watch(run_id):
        pass
    return run_id


def line(client: BenchClient, method: str, dataset: dict[str, Any], rows: int) -> list[str]:
    """Set a method's time at default settings against the loop's."""
    known = load_dataset(**dataset, n=rows)
    with programs(Program(sys.executable, __file__, "serve", method)) as (system,):
        # The same examples are timed in every run of a dataset; the first tells which.
        first = rows_of(client, system.address, dataset, rows)
        timed = {row.example_id.text for row in client.rows(first) if row.alone}
        alone = [example for example in known if str(example["id"]) in timed]
        runs = [first]

        def median() -> float:
            runs.append(rows_of(client, system.address, dataset, rows))
            return float(dict(client.get(runs[-1]).summaries[0].metrics)["latency_median"])

        shown, truth, moved = between(lambda: bare(method, alone), median)
    ended = [client.get(run_id).progress for run_id in runs]
    lost = sum(each.failed_rows for each in ended)
    off = shown - truth
    return [
        method,
        f"{lost} of {sum(each.completed_rows for each in ended)}",
        f"{truth * 1e3:.1f} ms",
        f"{shown * 1e3:.1f} ms",
        f"{len(timed)}",
        f"{off / truth:+.0%}",
        verdict(holds=abs(off) <= 0.15 * truth and not lost, moved=moved),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="hotpotqa")
    parser.add_argument("--config")
    parser.add_argument("--split")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--methods", default=",".join(METHODS))
    args = parser.parse_args()
    titles = ["Method", "Lost", "Bare loop", "p50 alone", "n", "Off by", "Holds"]
    with (
        scratch() as home,
        programs(start_daemon(home)) as (daemon,),
        BenchClient(daemon.address) as client,
    ):
        named = {"name": args.dataset, "config": args.config, "split": args.split}
        dataset = {key: value for key, value in named.items() if value}
        chosen = args.methods.split(",")
        print(table(titles, [line(client, each, dataset, args.rows) for each in chosen]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["loop"]:
        loop(sys.argv[2])
    elif sys.argv[1:2] == ["serve"]:
        serve(Summariser(sys.argv[2]), "127.0.0.1:0")
    else:
        main()
