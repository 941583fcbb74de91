"""Named data: files elsewhere that the daemon's configuration names, read where they lie.

    [data.traces]
    url = "s3://lab/traces/*.jsonl.gz"
    options = { endpoint_url = "http://127.0.0.1:9000" }
    env = { key = "LAB_KEY", secret = "LAB_SECRET" }
    mapping = { context = "passage" }

A client says `traces` and never an address. fsspec reads them; s3fs, gcsfs and the like are
installed for the kinds of storage that are wanted.
"""

import glob
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from cbench_server.datasets.away import is_away
from cbench_server.datasets.mapping import mapped, read_mapping
from cbench_server.datasets.readers.files import FILE_SUFFIXES, iterate_files
from cbench_server.datasets.readers.shards import checked
from cbench_server.datasets.record import DatasetRecord
from cbench_server.errors import BadDataset, DatasetAway, InvalidInput
from cbench_server.lazy_imports import require
from cbench_server.types import Example

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_KEYS = frozenset({"url", "options", "env", "mapping", "skip_bad_lines", "description"})
# What tells one content of a file from another, by kind of storage.
_MARKS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified")

_CONNECTS_S, _SILENCE_S = 10, 30


@dataclass(frozen=True)
class RemoteFile:
    """A file of some storage, opened there."""

    filesystem: Any
    path: str

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rstrip("/").rpartition("/")[2]

    def open(self, mode: str) -> Any:
        """Open it where it lies."""
        # What fsspec opens reads lines of any length only.
        return io.BufferedReader(self.filesystem.open(self.path, mode))

    def identity(self) -> str:
        """Tell its size, and what the storage has to tell this content from another."""
        found = self.filesystem.info(self.path)
        marks = [f"{mark}={found[mark]}" for mark in _MARKS if found.get(mark)]
        return ", ".join([f"size={found.get('size')}", *marks[:1]])

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class NamedData:
    """One table [data.NAME] of the configuration."""

    name: str
    url: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    mapping: dict[str, str] = field(default_factory=dict)
    skip_bad_lines: bool = False
    description: str = ""

    def files(self) -> list[RemoteFile]:
        """Return the files that hold the examples, in the order of their names."""
        filesystem, path = self._filesystem()
        with _explained(self.name):
            if glob.has_magic(path):
                found, inside = filesystem.glob(path), ""
            elif filesystem.isdir(path):
                found, inside = filesystem.find(path), path
            else:
                return [RemoteFile(filesystem, path)]
        files = [RemoteFile(filesystem, each) for each in found]
        return checked(files, f'data "{self.name}"', FILE_SUFFIXES, inside=inside)

    def _filesystem(self) -> tuple[Any, str]:
        require("fsspec", f'data "{self.name}" is read with the package')
        # Imported here because most daemons have no such data.
        from fsspec.core import url_to_fs

        with _explained(self.name):
            options = {**_limits_of(self.url), **self.options}
            filesystem, path = url_to_fs(self.url, **options)
        return filesystem, path

    def load(self, config: str) -> Iterator[Example]:
        """Iterate the examples, a few of them in memory at a time."""
        examples = chain.from_iterable(map(self._examples, self.files()))
        with _explained(self.name):
            yield from mapped(examples, self.mapping, self.name) if self.mapping else examples

    def _examples(self, file: RemoteFile) -> Iterator[Example]:
        """Iterate the examples of one file, which must be the same at its end."""
        before = file.identity()
        yield from iterate_files([file], skip_bad_lines=self.skip_bad_lines)
        # Listings are kept, and tell what was.
        file.filesystem.invalidate_cache()
        if file.identity() != before:
            raise BadDataset(f'data "{self.name}": {file} was changed while it was read')

    def provenance(self) -> dict[str, Any]:
        """Record which files are read, and what tells their contents from others."""
        with _explained(self.name):
            files = {each.path: each.identity() for each in self.files()}
        return {"files": files, **({"mapping": self.mapping} if self.mapping else {})}

    def record(self) -> DatasetRecord:
        """Describe it as a dataset."""
        return DatasetRecord(
            name=self.name,
            load=self.load,
            description=self.description or "Data that this daemon's configuration names.",
            family="named data",
            official=False,
            provenance=self.provenance,
        )


def _limits_of(url: str) -> dict[str, Any]:
    """Return options by which a server that says nothing is noticed, as a system would be."""
    scheme = url.partition("://")[0]
    if scheme in ("http", "https"):
        from fsspec.implementations import http

        limits = http.aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECTS_S, sock_read=_SILENCE_S
        )
        return {"client_kwargs": {"timeout": limits}}
    if scheme in ("s3", "s3a"):
        return {"config_kwargs": {"connect_timeout": _CONNECTS_S, "read_timeout": _SILENCE_S}}
    return {}


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what a storage raises into ours; its own words may quote keys, so they are left out."""
    try:
        yield
    except BadDataset as error:
        if is_away(error) and not isinstance(error, DatasetAway):
            raise _away(name, error.__cause__ or error) from error
        raise
    except ImportError as error:
        raise BadDataset(
            f'data "{name}" cannot be read: {error}. Install what reads that kind of storage '
            "beside the daemon."
        ) from error
    except Exception as error:
        if is_away(error):
            raise _away(name, error) from error
        raise BadDataset(_cannot_read(name, error)) from error


def _away(name: str, error: BaseException) -> DatasetAway:
    # No run is accepted whose files it did not tell.
    return DatasetAway(_cannot_read(name, error), was_there=True)


def _cannot_read(name: str, error: BaseException) -> str:
    return (
        f'data "{name}" cannot be read ({type(error).__name__}); the daemon\'s configuration '
        "says where it is."
    )


def named_data(
    tables: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> list[DatasetRecord]:
    """Read the [data] of a configuration; nothing is asked of any storage yet."""
    return [_read(name, entry, environment).record() for name, entry in tables.items()]


def _read(name: str, entry: Any, environment: Mapping[str, str]) -> NamedData:
    where = f"[data.{name}]"
    if not _NAME.fullmatch(name):
        raise InvalidInput(f'{where}: a name has small letters, digits, ".", "_" and "-".')
    if not isinstance(entry, Mapping) or not isinstance(entry.get("url"), str):
        raise InvalidInput(f'{where} needs url = "...".')
    if unknown := sorted(set(entry) - _KEYS):
        raise InvalidInput(
            f'{where} has no key "{unknown[0]}"; there are {", ".join(sorted(_KEYS))}.'
        )
    url = entry["url"]
    if "::" in url:
        raise InvalidInput(f'{where}: url "{url}" chains storages by "::", which is refused.')
    options = {**entry.get("options", {}), **_from(where, entry.get("env", {}), environment)}
    mapping = dict(entry.get("mapping", {}))
    read_mapping(mapping)
    return NamedData(
        name,
        url,
        options,
        mapping,
        skip_bad_lines=bool(entry.get("skip_bad_lines", False)),
        description=str(entry.get("description", "")),
    )


def _from(where: str, env: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    for option, variable in env.items():
        if variable not in environment:
            raise InvalidInput(f"{where}: env.{option} names {variable}, which is not set.")
    return {option: environment[variable] for option, variable in env.items()}
