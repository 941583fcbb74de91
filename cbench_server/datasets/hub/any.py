"""Any dataset of the hub, as `hf:org/name`, whose columns a mapping turns into fields."""

import re
from collections.abc import Iterator

from cbench_server.datasets.hub.sources import Access, Part, Row, is_name
from cbench_server.datasets.record import DatasetRecord, hub_dataset
from cbench_server.errors import BadDataset
from cbench_server.types import Example

PREFIX = "hf:"
_NAME = re.compile(r"hf:([\w-][\w.-]{0,95}/[\w-][\w.-]{0,95})", re.ASCII)
_CONFIG = re.compile(r"[\w-][\w.+ -]*")


class _Parts(dict[str, tuple[Part, ...]]):
    """The part of each config, whichever is asked for."""

    def __init__(self, repository: str) -> None:
        super().__init__()
        self._repository = repository
        self[""]

    def __missing__(self, config: str) -> tuple[Part, ...]:
        part = Part(repository=self._repository, config=config, fallback="validation")
        self[config] = (part,)
        return self[config]


def hub_record(name: str) -> DatasetRecord:
    """Describe a repository of the hub; nothing is asked there yet."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise BadDataset(
            f'"{name:.200}" is not a dataset of the hub; write it as hf:org/name[:config]'
        )

    def check(config: str) -> str:
        if config and not is_name(config, _CONFIG):
            raise BadDataset(f'"{config:.200}" is not a valid config of {name}')
        return config

    return hub_dataset(
        name,
        _Parts(found[1]),
        _as_they_are,
        check_config=check,
        description="A dataset of the hub, by the fields that --map names.",
        family="hub",
    )


def _as_they_are(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    return rows
