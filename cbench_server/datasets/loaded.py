"""Loaded dataset: examples that can be read more than once, and where they come from."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cbench_server.datasets.conversations import transcripts
from cbench_server.datasets.mapping import mapped, read_mapping
from cbench_server.datasets.once import once
from cbench_server.datasets.protocol import DatasetProtocol
from cbench_server.datasets.published import as_examples, benchmark_of_file, protocol_of_file
from cbench_server.datasets.readers.files import iterate_file, name_of_file
from cbench_server.datasets.record import DatasetRecord, published
from cbench_server.datasets.withheld import MADE_OF_A_SOURCE, OF_ANY_FILE
from cbench_server.errors import InvalidInput
from cbench_server.types import Example


class LoadedDataset:
    """The examples of a record or a file, read from their start whenever they are iterated.

    `evaluate()` takes from it how they are scored, and the tag of their rows.
    """

    def __init__(
        self,
        label: str,
        read: Callable[[], Iterator[Example]],
        *,
        record: DatasetRecord | None = None,
        protocol: DatasetProtocol | None = None,
        origin: Mapping[str, Any] | None = None,
        describe: Callable[[], Mapping[str, Any]] = dict,
        count: int | None = None,
        data_dir: str = "",
        worded_as: tuple[str, str] = ("", ""),
    ) -> None:
        self.label = label
        """The tag of its rows."""
        self.record = record
        """None for a file."""
        self.protocol = protocol
        """How its config is measured; None for a file that is in no benchmark's form."""
        self._read = read
        self._origin = dict(origin or {})
        self._describe = describe
        self.count = count
        """The most examples that are read; None for all."""
        self.data_dir = data_dir
        """Where its mirror is, if it has one."""
        self.worded_as = worded_as
        """The dataset and config whose prompt it has; both empty for any."""

    def __iter__(self) -> Iterator[Example]:
        return islice(map(once, self._read()), self.count)

    @property
    def reference_fields(self) -> tuple[str, ...]:
        """The fields kept from systems."""
        declared = self.record.reference_fields if self.record else OF_ANY_FILE
        is_made = "mapping" in self._origin or "as_transcript" in self._origin
        return (*declared, *(MADE_OF_A_SOURCE if is_made else ()))

    def describe(self) -> dict[str, Any]:
        """Record where the examples come from; asks the hub where it is read."""
        return {"label": self.label, "max_examples": self.count, **self._origin, **self._describe()}


def loaded_record(
    record: DatasetRecord,
    config: str = "",
    *,
    n: int | None = None,
    mapping: Mapping[str, str] | None = None,
    as_transcript: bool = False,
    **options: Any,
) -> LoadedDataset:
    """Load a dataset by its record; what cannot be read is refused at once."""
    chosen = record.config_of(config)
    protocol = record.protocol_of(chosen)
    label = f"{record.name}:{chosen}" if config else record.name
    record.examples(chosen, **options)
    read_mapping(mapping or {})
    where = {key: str(options[key]) for key in ("split", "revision", "data_dir") if key in options}
    hub = record.hub
    is_whole = hub is not None and n is None and not options.get("split")
    return LoadedDataset(
        label,
        lambda: _fields(record.examples(chosen, **options), mapping, label, as_transcript),
        record=record,
        protocol=protocol,
        origin={
            "split": options.get("split") or protocol.split,
            "revision": options.get("revision") or protocol.revision,
            **(published(record, chosen, asks=record.questions is not None) if is_whole else {}),
            **({"asked_revision": options["revision"]} if options.get("revision") else {}),
            **_recorded(mapping, as_transcript),
        },
        describe=lambda: (
            hub.provenance(chosen, **where)
            if hub is not None
            else record.own_files(chosen, where.get("data_dir", ""))
        ),
        count=n,
        data_dir=where.get("data_dir", ""),
        worded_as=(record.name, chosen),
    )


def loaded_file(
    path: Path,
    *,
    tag: str = "",
    n: int | None = None,
    skip_bad_lines: bool = False,
    mapping: Mapping[str, str] | None = None,
    as_transcript: bool = False,
    **unknown: Any,
) -> LoadedDataset:
    """Load a file of examples, under its own name unless a tag is given."""
    if unknown:
        raise InvalidInput(
            f'a file of examples has no option "{next(iter(unknown))}"; there are n, tag, '
            "skip_bad_lines, mapping and as_transcript"
        )

    label = tag or name_of_file(path)

    def read() -> Iterator[Example]:
        rows = iterate_file(path, skip_bad_lines=skip_bad_lines)
        return _fields(as_examples(rows), mapping, label, as_transcript)

    first = next(iterate_file(path, skip_bad_lines=skip_bad_lines), {})
    read_mapping(mapping or {})
    benchmark = "" if mapping else benchmark_of_file(first)
    return LoadedDataset(
        label,
        read,
        protocol=protocol_of_file(benchmark),
        origin={"file": str(path), "split": "", **_recorded(mapping, as_transcript)},
        count=n,
        worded_as=(benchmark, ""),
    )


def _fields(
    examples: Iterator[Example], mapping: Mapping[str, str] | None, label: str, as_transcript: bool
) -> Iterator[Example]:
    examples = mapped(examples, mapping, label) if mapping else examples
    return transcripts(examples, label=label) if as_transcript else examples


def _recorded(mapping: Mapping[str, str] | None, as_transcript: bool) -> dict[str, Any]:
    return {
        **({"mapping": dict(mapping)} if mapping else {}),
        **({"as_transcript": True} if as_transcript else {}),
    }
