"""Fields of the contract: the Go and Rust SDKs, which wrap messages by hand, forget none.

Python and Node make theirs from descriptors. A message is covered where user code holds it itself,
or where each of its fields is set or read by the SDK's own sources.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor

from cbench_client._gen.cbench.v1 import (
    bench_pb2,
    evaluator_pb2,
    example_pb2,
    failure_pb2,
    gateway_pb2,
    memory_pb2,
    option_pb2,
    system_pb2,
)
from tests.fixtures.sdks import CLIENTS

WRAPPED = (
    evaluator_pb2,
    example_pb2,
    failure_pb2,
    gateway_pb2,
    memory_pb2,
    option_pb2,
    system_pb2,
)
# What only peers say to each other, what the daemon alone fills, and what is deprecated.
NOT_FOR_SDKS = {
    "EvaluatorInfo.location",
    "ResumeRunRequest.waiting_reason",
    "SystemInfo.location",
    "Welcome.attachment_id",
}


def requests() -> list[Descriptor]:
    """Return what clients of a daemon may send."""
    return [method.input_type for method in bench_pb2.DESCRIPTOR.services_by_name["Bench"].methods]


def messages() -> list[Descriptor]:
    own = [
        message for file in WRAPPED for message in file.DESCRIPTOR.message_types_by_name.values()
    ]
    return [*own, *requests()]


def go_sources() -> str:
    paths = (path for path in (CLIENTS / "go").glob("*.go") if not path.stem.endswith("_test"))
    return "\n".join(path.read_text() for path in sorted(paths))


def rust_sources() -> str:
    paths = sorted(Path(CLIENTS, "rust", "src").glob("*.rs"))
    # Tests within a file are at its end.
    return "\n".join(path.read_text().partition("#[cfg(test)]")[0] for path in paths)


def in_go(message: str, field: str, text: str) -> bool:
    """Whether Go's users have the message itself, or its field is named in the sources."""
    if re.search(rf"\w+ (\[\])?\*pb\.{message}\b[^{{]", "\n".join(signatures(text, "func (c "))):
        return True
    name = "".join(part.capitalize() for part in field.split("_"))
    return re.search(rf"\bGet{name}\(|\b{name}:|\.{name}\b", text) is not None


def in_rust(message: str, field: str, text: str) -> bool:
    if re.search(rf": pb::{message}\b", "\n".join(signatures(text, "pub async fn", "pub fn"))):
        return True
    # Choices are variants of an enum.
    variant = "".join(part.capitalize() for part in field.split("_"))
    shapes = rf"\.(r#)?{field}\b|\b{field}(:| *,| *\}})|\bKind::{variant}\b"
    return re.search(shapes, text) is not None


def signatures(text: str, *starts: str) -> list[str]:
    found = []
    for start in starts:
        for part in text.split(start)[1:]:
            found.append(re.split(r"\{\n", part, maxsplit=1)[0])
    return found


@pytest.mark.parametrize(
    ("sources", "covers"), [(go_sources, in_go), (rust_sources, in_rust)], ids=["go", "rust"]
)
def test_every_field_is_set_or_read(
    sources: Callable[[], str], covers: Callable[[str, str, str], bool]
) -> None:
    text = sources()
    forgotten = [
        f"{message.name}.{field.name}"
        for message in messages()
        for field in message.fields
        if f"{message.name}.{field.name}" not in NOT_FOR_SDKS
        and not covers(message.name, field.name, text)
    ]
    assert forgotten == []


@pytest.mark.parametrize(
    ("sources", "call"),
    [(go_sources, r"\.bench\.{}\b"), (rust_sources, r"client\.{}\(")],
    ids=["go", "rust"],
)
def test_every_method_of_the_daemon_has_a_wrapper(sources: Callable[[], str], call: str) -> None:
    text = sources()
    for method in bench_pb2.DESCRIPTOR.services_by_name["Bench"].methods:
        snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", method.name).lower()
        spelt = method.name if sources is go_sources else snake
        assert re.search(call.format(spelt), text), f"{method.name} has no wrapper"
