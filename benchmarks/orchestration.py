"""Rows per second, remote and durable, against what the same machine gives without us.

    python benchmarks/orchestration.py [--rows 4000] [--sizes 400,1000,16000,256000]

Baselines, measured in the same run: (a) the bare gRPC ceiling for the same
transport and echo, nothing scored or stored; (b) a plain sequential loop in
one process that calls the same function, does the same AnswerQuality scores
and two tiktoken counts, and stores nothing; (c) the same loop with 32 threads.
"""

import argparse
import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tiktoken
from echo_system import answer
from parts import make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import system_pb2, system_pb2_grpc
from cbench_client.messages import convert
from cbench_client.remote.channel import open_channel
from cbench_client.remote.connection import SystemConnection
from cbench_server.evaluators import AnswerQuality
from cbench_server.tokens.vocabulary import VOCABULARIES, parse_ranks, read_vocabulary

IN_FLIGHT = 64


def tiktoken_encoding() -> tiktoken.Encoding:
    """The real tiktoken, on the vocabulary we carry."""
    cl100k = VOCABULARIES["cl100k_base"]
    return tiktoken.Encoding(
        cl100k.name,
        pat_str=cl100k.pattern,
        mergeable_ranks=parse_ranks(read_vocabulary(cl100k)),
        special_tokens={},
    )


def in_process(examples: list[dict[str, Any]], threads: int) -> float:
    """Baselines (b) and (c): rows per second."""
    encoding = tiktoken_encoding()
    evaluator = AnswerQuality()

    def count(example: dict[str, Any]) -> int:
        texts = (value for value in example.values() if isinstance(value, str))
        return sum(len(encoding.encode_ordinary(text)) for text in texts)

    def one(example: dict[str, Any]) -> tuple[int, int, dict[str, float]]:
        tokens_in = count(example)
        processed = answer(example)
        return tokens_in, count(processed), evaluator.score(example, processed)

    one(examples[0])
    started = time.perf_counter()
    if threads == 1:
        for example in examples:
            one(example)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, examples))
    return len(examples) / (time.perf_counter() - started)


async def bare_unary(address: str, examples: list[dict[str, Any]], in_flight: int) -> float:
    """Baseline (a), unary: encoded requests sent, replies decoded by protobuf, nothing else."""
    channel = open_channel(address)
    stub = system_pb2_grpc.SystemStub(channel)
    requests = []
    for number, example in enumerate(examples):
        request = system_pb2.ProcessRequest(call_id=str(number))
        convert.example_to_proto(example, request.example)
        requests.append(request)
    await stub.Process(requests[0])
    waiting = iter(requests)

    async def work() -> None:
        for request in waiting:
            await stub.Process(request)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    rate = len(requests) / (time.perf_counter() - started)
    await channel.close()
    return rate


async def bare_stream(address: str, examples: list[dict[str, Any]], in_flight: int) -> float:
    """Baseline (a), stream: our own connection with nothing behind it."""
    connection = SystemConnection(address)
    await connection.describe()
    waiting = iter(enumerate(examples))

    async def work() -> None:
        for number, example in waiting:
            await connection.process("echo", example, call_id=str(number), timeout=60)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    rate = len(examples) / (time.perf_counter() - started)
    await connection.close()
    return rate


def through_daemon(
    mode: str, examples: list[dict[str, Any]], in_flight: int, delay: float = 0.0
) -> tuple[float, float]:
    """Ours: rows per second, and microseconds of the daemon's CPU per row."""
    with (
        scratch() as home,
        programs(start_daemon(home), start_echo(mode, delay)) as (daemon, echo),
        BenchClient(daemon.address) as client,
    ):
        digest, _ = client.upload(examples)
        spec = {
            "systems": [{"target": echo.address}],
            "datasets": [{"name": "bench", "upload": digest}],
            "evaluators": [{"name": "answer-quality"}],
            "replace_evaluators": True,
            "max_concurrency": in_flight,
        }
        warm = {**spec, "datasets": [{"name": "w", "upload": digest, "max_examples": 50}]}
        list(client.evaluate(warm))
        cpu, started, rows = daemon.cpu_seconds, time.perf_counter(), 0
        for event in client.evaluate(spec):
            rows += event.WhichOneof("kind") == "row"
        elapsed = time.perf_counter() - started
        assert rows == len(examples)
        return rows / elapsed, (daemon.cpu_seconds - cpu) / rows * 1e6


def compare_sizes(sizes: list[int], rows: int) -> str:
    """One line per size and transport."""
    lines = []
    # One loop for all: grpc's poller outlives the loops that asyncio.run closes, and complains.
    loop = asyncio.new_event_loop()
    for size in sizes:
        count = max(200, min(rows, 40_000_000 // size))
        examples = list(make_examples(count, size))
        sequential, threaded = in_process(examples, 1), in_process(examples, 32)
        for mode in ("stream", "unary"):
            bare = bare_stream if mode == "stream" else bare_unary
            with programs(start_echo(mode)) as (echo,):
                ceiling = loop.run_until_complete(bare(echo.address, examples, IN_FLIGHT))
            ours, cpu = through_daemon(mode, examples, IN_FLIGHT)
            lines.append(
                [
                    f"{size:,} B",
                    mode,
                    f"{ours:,.0f}",
                    f"{cpu:,.0f}",
                    f"{ceiling:,.0f} ({ours / ceiling:.2f})",
                    f"{sequential:,.0f} ({ours / sequential:.2f})",
                    f"{threaded:,.0f} ({ours / threaded:.2f})",
                ]
            )
    header = ["context", "transport", "ours, rows/s", "daemon CPU, us/row"]
    return table(
        [
            *header,
            "(a) bare gRPC (ratio)",
            "(b) in process (ratio)",
            "(c) 32 threads (ratio)",
        ],
        lines,
    )


def slow_system(rows: int) -> str:
    """A system that takes 10 ms, 32 calls in flight: the rate it allows is 3,200 per second."""
    examples = list(make_examples(rows, 400))
    lines = []
    for mode in ("stream", "unary"):
        ours, _ = through_daemon(mode, examples, 32, 0.010)
        lines.append([mode, f"{ours:,.0f}", "3,200", f"{ours / 3200:.2f}"])
    return table(["transport", "ours, rows/s", "theoretical", "ratio"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--sizes", default="400,1000,16000,256000")
    arguments = parser.parse_args()
    print(compare_sizes([int(size) for size in arguments.sizes.split(",")], arguments.rows))
    print()
    print(slow_system(arguments.rows))


if __name__ == "__main__":
    main()
