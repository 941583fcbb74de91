"""The datasets that exist, each described by a record; the registry registers `RECORDS`."""

from cbench_server.datasets.embedded_sets import LONG_NOTES, MINI_QA
from cbench_server.datasets.files import FILE_SUFFIXES, iterate_file
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS, DatasetRecord
from cbench_server.datasets.validate import IdLedger, check_example

RECORDS: tuple[DatasetRecord, ...] = (MINI_QA, LONG_NOTES)

__all__ = [
    "DEFAULT_REFERENCE_FIELDS",
    "FILE_SUFFIXES",
    "RECORDS",
    "DatasetRecord",
    "IdLedger",
    "check_example",
    "iterate_file",
]
