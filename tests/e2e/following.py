"""Following a run in tests, with the promises about sequences checked on the way."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2


@dataclass
class Followed:
    """What a client saw of a run."""

    rows: list[Any] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    last_sequence: int = 0
    finished: Any = None

    def take(self, event: Any) -> None:
        """Take one event; every stored one must come once and in order."""
        if event.sequence:
            assert event.sequence == self.last_sequence + 1
            self.last_sequence = event.sequence
        kind = event.WhichOneof("kind")
        if kind == "row":
            self.rows.append(event.row)
        elif kind == "state_change":
            self.states.append(bench_pb2.RunState.Name(event.state_change.state)[10:])
        elif kind == "finished":
            self.finished = event.finished

    @property
    def state(self) -> str:
        return bench_pb2.RunState.Name(self.finished.state)[10:]

    @property
    def keys(self) -> list[tuple[str, int, int]]:
        return [(row.system, row.ordinal, row.repeat) for row in self.rows]

    @property
    def failures(self) -> dict[str, str]:
        """Reasons by example id."""
        return {
            row.example_id.text: row.failure.reason for row in self.rows if row.HasField("failure")
        }


def follow(events: Iterable[Any]) -> Followed:
    """Follow events to their end."""
    followed = Followed()
    for event in events:
        followed.take(event)
    return followed


def run(client: BenchClient, spec: dict[str, Any], examples: list[dict[str, Any]]) -> Followed:
    """Upload examples, run the spec on them and follow it to its end."""
    digest, _ = client.upload(examples)
    spec = {"datasets": [{"name": "given", "upload": digest}], **spec}
    return follow(client.evaluate(spec))
