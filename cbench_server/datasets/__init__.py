"""The datasets that exist, each described by a record; the registry registers `RECORDS`."""

from cbench_server.datasets import (
    code,
    embedded_sets,
    instruction_following,
    long_context,
    maths,
    memory,
    multiple_choice,
    nli,
    question_answering,
    reasoning,
    software,
    summarization,
    tool_use,
)
from cbench_server.datasets.files import FILE_SUFFIXES, iterate_file
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS, DatasetRecord, hub_dataset
from cbench_server.datasets.sources import Part, by_config, each
from cbench_server.datasets.validate import IdLedger, check_example

RECORDS: tuple[DatasetRecord, ...] = (
    *embedded_sets.RECORDS,
    *question_answering.RECORDS,
    *multiple_choice.RECORDS,
    *maths.RECORDS,
    *code.RECORDS,
    *summarization.RECORDS,
    *nli.RECORDS,
    *reasoning.RECORDS,
    *instruction_following.RECORDS,
    *long_context.RECORDS,
    *tool_use.RECORDS,
    *software.RECORDS,
    *memory.RECORDS,
)

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
