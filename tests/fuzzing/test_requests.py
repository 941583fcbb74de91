"""Whatever a request holds, it is answered or refused, never an error of the daemon's own.

Messages are made of the contract itself, so that a new field is tried without a word here.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2, evaluator_pb2
from cbench_server.daemon.embedded import embedded

TEXTS = [
    *("", "a", "mini-qa", "identity", "../../etc/passwd", "\0", "\u202e", "x" * 5000, "a/b", "%00"),
    *("nan", "-1", "1e309", "127.0.0.1:1", "unix:/tmp/x", "http://[::1", "http://a b", "(a+)+$"),
    *("answer-quality", "mean_score", "html", "parquet", "cl100k_base", "id", "ruler", "a:b"),
]
NUMBERS = [0, 1, -1, 2, 1000, 2**31 - 1, -(2**31)]
FRACTIONS = [0.0, 0.5, -1.0, float("nan"), float("inf"), 1e308, 5e-324]
BROKEN = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE)
SEED, REQUESTS = 16, 12
METHODS = {
    f"{service.full_name}/{method.name}": method
    for file in (bench_pb2.DESCRIPTOR, evaluator_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
}


class Strange:
    """Fills messages with what nobody sends."""

    def __init__(self, seed: str, run_id: str) -> None:
        self._random = random.Random(seed)
        self._texts = [*TEXTS, run_id]

    def message(self, kind: Any) -> Any:
        message = message_factory.GetMessageClass(kind)()
        self._fill(message, self._random.choice([0.2, 0.5, 0.8]))
        if "spec" in kind.fields_by_name:
            # Or every run would be refused for its system or dataset.
            del message.spec.systems[1:], message.spec.datasets[:]
            message.spec.systems.add(builtin="identity")
            message.spec.datasets.add(name="mini-qa", max_examples=2)
        return message

    def _fill(self, message: Any, share: float, depth: int = 0) -> None:
        for field in message.DESCRIPTOR.fields:
            if self._random.random() > share or depth > 5:
                continue
            value, kind = getattr(message, field.name), field.message_type
            if kind is not None and kind.GetOptions().map_entry:
                entry = kind.fields_by_name["value"]
                if entry.message_type is not None:
                    self._fill(value[self._text()], 0.5, depth + 1)
                else:
                    value[self._text()] = self._scalar(entry)
            elif kind is not None:
                part = value.add() if field.is_repeated else value
                part.SetInParent()
                self._fill(part, 0.4, depth + 1)
            elif field.is_repeated:
                value.append(self._scalar(field))
            else:
                setattr(message, field.name, self._scalar(field))

    def _text(self) -> str:
        return self._random.choice(self._texts)

    def _scalar(self, field: Any) -> Any:
        kind, choice = field.type, self._random.choice
        if kind == FieldDescriptor.TYPE_STRING:
            return self._text()
        if kind == FieldDescriptor.TYPE_BYTES:
            return choice([b"", b"\xff\xfe", b"x" * 1000])
        if kind == FieldDescriptor.TYPE_BOOL:
            return choice([True, False])
        if kind == FieldDescriptor.TYPE_ENUM:
            return choice([0, 1, 2, 99, -5])
        if kind in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
            return choice(FRACTIONS)
        number = choice(NUMBERS)
        is_signed = kind in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)
        return number if is_signed else abs(number) % 2**31


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A daemon's address, and the id of a run that it has."""
    home: Path = tmp_path_factory.mktemp("home")
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
    with embedded(home=home) as address, BenchClient(address) as client:
        yield address, client.start(spec)


@pytest.mark.parametrize("method", METHODS)
def test_strange_requests_are_answered_or_refused(method: str, daemon: tuple[str, str]) -> None:
    address, run_id = daemon
    kind, strange = METHODS[method], Strange(f"{SEED}/{method}", run_id)
    with grpc.insecure_channel(address) as channel:
        for _ in range(REQUESTS):
            message = strange.message(kind.input_type)
            code, said = answer(channel, method, kind, message.SerializeToString())
            assert code not in BROKEN, f"{said} for {message}"


def answer(channel: grpc.Channel, method: str, kind: Any, request: bytes) -> tuple[Any, str]:
    """Send a request, and return the code with which it is answered."""
    try:
        begin(channel, method, kind, request)
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def begin(channel: grpc.Channel, method: str, kind: Any, request: bytes) -> None:
    """Send a request, and read the beginning of what comes."""
    path, timeout = f"/{method}", 30
    if kind.client_streaming and kind.server_streaming:
        answers: Any = channel.stream_stream(path)(iter([request]), timeout=timeout)
    elif kind.server_streaming:
        answers = channel.unary_stream(path)(request, timeout=timeout)
    elif kind.client_streaming:
        channel.stream_unary(path)(iter([request]), timeout=timeout)
        return
    else:
        channel.unary_unary(path)(request, timeout=timeout)
        return
    next(iter(answers), None)
    answers.cancel()
