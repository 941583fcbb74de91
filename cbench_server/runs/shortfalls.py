"""Shortfalls of what a run read: a mirror may hold a part of a dataset's examples."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cbench_server.datasets.protocol import Axis
from cbench_server.datasets.record import published
from cbench_server.runs.store import RunStore
from cbench_server.spec import Run

if TYPE_CHECKING:
    from cbench_server.runs.resolved_dataset import ResolvedDataset

_WORDS = {"published_examples": "examples", "published_questions": "questions"}
_READ = "num_examples"


def published_examples(dataset: "ResolvedDataset") -> dict[str, int]:
    """Record how many examples there would be, where all of a known number are asked for."""
    ref, record = dataset.ref, dataset.record
    if record is None or record.hub is None:
        return {}
    is_part = dataset.question_types or ref.where or ref.split or ref.max_examples is not None
    asks = dataset.is_memory or ref.as_transcript
    return {} if is_part else published(record, ref.config, asks=asks)


def without_sizes(described: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out how many there would be, where not all were asked for."""
    return {key: value for key, value in described.items() if key not in _WORDS}


def _published(dataset: Mapping[str, Any]) -> tuple[int, str]:
    """Return how many there would be, and of what; 0 where that is not known."""
    return next(((dataset[key], word) for key, word in _WORDS.items() if key in dataset), (0, ""))


async def counted(store: RunStore, run: Run) -> list[dict[str, Any]]:
    """Return the record of a run's datasets, with what is missing on their axis of data."""
    datasets: list[dict[str, Any]] = run.config.get("datasets", [])
    if not any(_published(each)[0] for each in datasets):
        return datasets
    end, is_complete = await store.spooled(run.run_id)
    if not is_complete:
        return datasets
    found, start = [], 0
    for place, dataset in enumerate(datasets):
        later = {each["label"] for each in datasets[place + 1 :]}
        stop = await _first_of(store, run.run_id, later, start, end) if later else end
        found.append(compared(dataset, stop - start))
        start = stop
    return found


async def _first_of(store: RunStore, run_id: str, labels: set[str], low: int, high: int) -> int:
    """Return the first place of an example of these datasets, which follow all others."""
    while low < high:
        middle = (low + high) // 2
        (example,) = await store.read_examples(run_id, middle, 1)
        low, high = (low, middle) if example.dataset in labels else (middle + 1, high)
    return low


def short(datasets: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Say of each dataset that lacks examples how many there were."""
    return {
        each["label"]: f"of the {size:,} {word} of {each['label']} {each[_READ]:,}"
        for each in datasets
        for size, word in [_published(each)]
        if _READ in each and each[_READ] < size
    }


def compared(dataset: dict[str, Any], count: int) -> dict[str, Any]:
    """Add how many examples were read, and to the axis of data that more are published."""
    dataset = {**dataset, _READ: count}
    wanted, word = _published(dataset)
    protocol = dataset.get("protocol")
    if not protocol or count >= wanted:
        return dataset
    said = f"Of {wanted:,} {word} {count:,} were there."
    axis = Axis(**protocol["axes"]["data"])
    if said not in axis.why:
        axis = axis.with_difference(said)
    axes = {**protocol["axes"], "data": {"status": axis.status, "why": axis.why}}
    return {**dataset, "protocol": {**protocol, "axes": axes}}
