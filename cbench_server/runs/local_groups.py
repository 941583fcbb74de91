"""Groups and suites of a local evaluation."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from cbench_server.errors import InvalidSpec
from cbench_server.metrics.groups import OWN_FIELDS, is_group, unknown_field
from cbench_server.registry import registry, split_name
from cbench_server.runs.grouping import described_figure
from cbench_server.runs.local_data import Source
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.suites import suites_in
from cbench_server.spec import DatasetRef, RunSpec

_FIELDS_FROM = 1000


def checked_fields(
    asked: Sequence[str], sources: Sequence[Source], examples: Sequence[SpooledExample]
) -> tuple[str, ...]:
    """Return the fields to group by; refuse one that no example has."""
    if isinstance(asked, str):
        raise InvalidSpec(f'group_by is the text "{asked}"; give a list: group_by=["{asked}"]')
    for name in asked:
        if name not in OWN_FIELDS and not any(name in entry.example for entry in examples):
            raise InvalidSpec(unknown_field(name, _known(sources, examples)))
    return tuple(asked)


def _known(sources: Sequence[Source], examples: Sequence[SpooledExample]) -> Iterable[str]:
    for source in sources:
        if source.loaded and source.loaded.protocol:
            yield from source.loaded.protocol.groups
    for entry in islice(examples, _FIELDS_FROM):
        yield from (name for name, value in entry.example.items() if is_group(name, value))


def refs_of(
    sources: Sequence[Source], tags: Iterable[str], max_examples: int | None
) -> tuple[DatasetRef, ...]:
    """Refer to the datasets that rows are tagged with, and to how much of each was read."""
    counts = {source.label: source.loaded.count for source in sources if source.loaded is not None}
    return tuple(
        DatasetRef(*split_name(tag), max_examples=max_examples or counts.get(tag)) for tag in tags
    )


def described_figures(spec: RunSpec, fields: Sequence[str]) -> dict[str, Any]:
    """Record the suites and groups of which there are figures."""
    suites = [suite.describe() for suite in suites_in(spec.datasets, registry)]
    return {
        **({"suites": suites} if suites else {}),
        **({"group_by": list(fields)} if fields else {}),
        **described_figure(spec, registry),
    }
