"""Datasets, each described by a record. Names are imported on first use."""

from typing import TYPE_CHECKING, Any

from cbench_server.lazy_imports import names_of

if TYPE_CHECKING:
    from cbench_server.datasets.hub.sources import Part as Part
    from cbench_server.datasets.hub.sources import by_config as by_config
    from cbench_server.datasets.hub.sources import each as each
    from cbench_server.datasets.readers.files import FILE_SUFFIXES as FILE_SUFFIXES
    from cbench_server.datasets.readers.files import iterate_file as iterate_file
    from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS as DEFAULT_REFERENCE_FIELDS
    from cbench_server.datasets.record import DatasetRecord as DatasetRecord
    from cbench_server.datasets.record import hub_dataset as hub_dataset
    from cbench_server.datasets.validate import IdLedger as IdLedger
    from cbench_server.datasets.validate import check_example as check_example

    RECORDS: tuple[DatasetRecord, ...]

_HOMES = {
    "Part": "hub.sources",
    "by_config": "hub.sources",
    "each": "hub.sources",
    "FILE_SUFFIXES": "readers.files",
    "iterate_file": "readers.files",
    "DEFAULT_REFERENCE_FIELDS": "record",
    "DatasetRecord": "record",
    "hub_dataset": "record",
    "IdLedger": "validate",
    "check_example": "validate",
}

__all__ = [
    "DEFAULT_REFERENCE_FIELDS",
    "FILE_SUFFIXES",
    "RECORDS",
    "DatasetRecord",
    "IdLedger",
    "Part",
    "by_config",
    "check_example",
    "each",
    "hub_dataset",
    "iterate_file",
]

_find = names_of(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name == "RECORDS":
        from cbench_server.datasets.families import records

        return tuple(records())
    return _find(name)
