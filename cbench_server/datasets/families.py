"""Families of datasets. A name is looked up in one after the other, so that a
command which uses an embedded dataset does not load the catalogue.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

from cbench_server.datasets.record import DatasetRecord

FAMILIES = (
    "embedded.sets",
    "generated.sets",
    "catalog.question_answering",
    "catalog.frames",
    "catalog.reading",
    "catalog.multiple_choice",
    "catalog.maths",
    "catalog.code",
    "catalog.summarization",
    "catalog.nli",
    "catalog.reasoning",
    "catalog.instruction_following",
    "catalog.long_context",
    "catalog.nolima",
    "catalog.tool_use",
    "catalog.software",
    "catalog.memory",
)
"""Modules with `RECORDS`, in the order in which datasets are listed."""


def records() -> Iterator[DatasetRecord]:
    """Yield every record; a family is imported when its turn comes."""
    for family in FAMILIES:
        module = import_module(f"cbench_server.datasets.{family}")
        yield from cast(tuple[DatasetRecord, ...], module.RECORDS)


class Datasets(Mapping[str, DatasetRecord]):
    """Every record by its name."""

    def __getitem__(self, name: str) -> DatasetRecord:
        for record in records():
            if record.name == name:
                return record
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (record.name for record in records())

    def __len__(self) -> int:
        return sum(1 for _ in records())
