"""Sources of a dataset's rows: the local mirror first, then the hub."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cbench_server.datasets.away import is_away
from cbench_server.datasets.hub import mirror, stream
from cbench_server.errors import BadDataset, DatasetAway, InvalidInput
from cbench_server.types import Example

# A split names a file of the mirror, and must not lead out of it; a revision becomes a part of
# an address, and must not lead to another.
_SPLIT = re.compile(r"[\w-][\w.+-]*")
_REVISION = re.compile(r"(?!.*(?:\.\.|//|\.$|/$))[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}")
# Names of files have at most 255 bytes, with their endings.
_MOST_BYTES = 200

Row = Example
"""One record of a source, under the source's own column names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one split: where the hub has them, and where a mirror may have them.

    In a mirror they are at `<repository>/<config>/<split>`, with `default` for no config, or
    at one of the stems in `also`, which are other copies.
    """

    repository: str
    config: str = ""
    split: str = "test"
    file: str = ""
    """A JSON file of the repository that is read as it is, in the mirror as on the hub."""
    url: str = ""
    """How the hub keeps the rows, if not as a dataset; see `stream.stream_rows`."""
    schema: tuple[tuple[str, str], ...] = ()
    """The columns at `url` and their types, where the first rows do not show them."""
    revision: str = ""
    also: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    """Files of a mirror that hold the same as their authors publish it, which are read first."""
    fallback: str = ""
    """Another split, read where a mirror has that alone and no split was asked for."""
    is_optional: bool = False
    """Whether a mirror that has the repository may lack this part."""

    @property
    def stems(self) -> tuple[str, ...]:
        """Its places in a mirror, without the ending."""
        return (f"{self.repository}/{self.config or 'default'}/{self.split}", *self.also)

    @property
    def path(self) -> str:
        """The place in a mirror of the file that is read as it is; empty if there is none."""
        return f"{self.repository}/{self.file}" if self.file else ""

    def of_split(self, split: str) -> "Part":
        """Return the part of a split that was asked for."""
        copies = [stem.removesuffix(self.split) for stem in self.also if self._is_copy(stem)]
        also = tuple(f"{stem}{split}" for stem in copies)
        return replace(self, split=split, also=also, published=(), fallback="")

    def in_mirror(self, folder: Path) -> "tuple[Part, Path] | None":
        """Return the part that a mirror holds and its file: this one, else that of the fallback."""
        for name in self.published:
            if (folder / name).is_file():
                return self, folder / name
        if (path := mirror.find(folder, self.stems, self.path)) is not None:
            return self, path
        return self.of_split(self.fallback).in_mirror(folder) if self.fallback else None

    def _is_copy(self, stem: str) -> bool:
        return stem.endswith(f"/{self.split}")


@dataclass(frozen=True, slots=True)
class Access:
    """Access to the parts of a dataset while it is read once."""

    dataset: str
    folder: Path | None
    revision: str = ""
    skip_bad_lines: bool = False
    config: str = ""

    def __post_init__(self) -> None:
        check_revision(self.dataset, self.revision)

    def rows(self, part: Part) -> Iterator[Row]:
        """Iterate the rows of a part."""
        if (path := self._find(part)) is not None:
            return mirror.iterate_mirrored(path, skip_bad_lines=self.skip_bad_lines)
        if part.is_optional and self._is_mirrored(part.repository):
            return iter(())
        revision = self.revision or part.revision
        if part.file:
            rows = stream.file_rows(part.repository, part.file, revision)
        else:
            rows = stream.stream_rows(
                part.repository, part.config, part.split, revision, part.url, part.schema
            )
        return self._explained(rows, part)

    def text_files(self, repository: str, folders: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
        """Yield the text files, by name, of the first folder that has one: each one's path in the
        repository, and on this machine.
        """
        if self.folder is not None and not self.revision and self._is_mirrored(repository):
            home = self.folder / repository
            for name in _texts(repository, mirror.text_names(home), folders):
                yield name, home / name
            return
        with self._explaining(Part(repository=repository, file=f"{folders[0]}/ANY.txt")):
            names = _texts(repository, stream.file_names(repository, self.revision), folders)
        for name in names:
            with self._explaining(Part(repository=repository, file=name)):
                path = stream.fetch(repository, name, self.revision)
            yield name, path

    def file(self, part: Part) -> Path:
        """Fetch a part that is one file of the hub."""
        with self._explaining(part):
            return stream.fetch(part.repository, part.file, self.revision or part.revision)

    def _find(self, part: Part) -> Path | None:
        # A mirror does not say which revision it holds.
        if self.folder is None or self.revision:
            return None
        found = part.in_mirror(self.folder)
        return found and found[1]

    def _is_mirrored(self, repository: str) -> bool:
        return self.folder is not None and (self.folder / repository).is_dir()

    def _explained(self, rows: Iterator[Row], part: Part) -> Iterator[Row]:
        while True:
            with self._explaining(part):
                row = next(rows, None)
            if row is None:
                return
            yield row

    @contextmanager
    def _explaining(self, part: Part) -> Iterator[None]:
        """Turn errors of the hub into one that names the way out."""
        try:
            yield
        except InvalidInput:
            raise
        except Exception as error:
            # The libraries below raise a dozen unrelated classes for the same outage.
            wanted = part.path or f"{part.stems[0]}.jsonl"
            where = self.folder or "DIR"
            how = "" if self.folder else " and pass --data-dir DIR"
            other = "" if part.file else f" (or {', '.join(mirror.SUFFIXES[1:])})"
            said = str(error).strip()
            # Of a wrong name the lines after the first list those there are.
            known = " ".join(said.split()) if isinstance(error, ValueError) else ""
            reason = known or said.partition("\n")[0] or "no reason given"
            kind = DatasetAway if is_away(error) else BadDataset
            raise kind(
                f'dataset "{self.dataset}": the hub did not deliver {part.repository} '
                f"({type(error).__name__}: {reason:.300}). "
                f"To work without the hub, put its rows at {where}/{wanted}{other}{how}."
            ) from error


Mapper = Callable[[Iterator[Row], Access], Iterator[Example]]
"""From the rows of a source to examples, one at a time."""


@dataclass(frozen=True, slots=True)
class HubSource:
    """A dataset's parts by config ("" where it has none), and how rows become examples."""

    name: str
    parts: Mapping[str, tuple[Part, ...]]
    mapping: Mapper
    companions: tuple[Part, ...] = ()
    """Parts that the mapping also reads, for every config."""
    text_folders: tuple[str, ...] = ()
    """Folders of the repository with a text that the mapping also reads."""

    def load(
        self,
        config: str,
        *,
        split: str = "",
        revision: str = "",
        data_dir: str | Path | None = None,
        skip_bad_lines: bool = False,
    ) -> Iterator[Example]:
        """Iterate the examples; wrong arguments raise before the first one."""
        parts = self._of_split(config, split)
        folder = mirror.mirror_folder(data_dir)
        access = Access(self.name, folder, revision, skip_bad_lines, config)
        rows = itertools.chain.from_iterable(access.rows(part) for part in parts)
        return self._mapped(rows, access)

    def _mapped(self, rows: Iterator[Row], access: Access) -> Iterator[Example]:
        count = 0
        try:
            for example in self.mapping(rows, access):
                yield example
                count += 1
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise BadDataset(
                f'dataset "{self.name}", after {count} examples: a row does not have the '
                f"expected form ({type(error).__name__}: {error!s:.200})"
            ) from error

    def is_mirrored(self, config: str, data_dir: str | Path | None) -> bool:
        """Whether a mirror holds a config, so that no network is needed."""
        folder = mirror.named_folder(data_dir)
        return folder is not None and bool(self._mirrored(self.parts[config], folder))

    def provenance(
        self,
        config: str,
        *,
        split: str = "",
        revision: str = "",
        data_dir: str | Path | None = None,
    ) -> dict[str, Any]:
        """Return what `load` reads with these arguments: the split, and the files by digest or a
        revision of the hub.

        If the hub does not answer, the revision is the one asked for.
        """
        parts = self._of_split(config, split)
        check_revision(self.name, revision)
        folder = mirror.mirror_folder(data_dir)
        files = self._mirrored(parts, folder) if folder and not revision else []
        if folder and files:
            digests = {path.relative_to(folder).as_posix(): mirror.digest(path) for path in files}
            return {"split": self._split_of(parts, folder), "revision": "", "files": digests}
        asked = revision or parts[0].revision
        commit = stream.resolved_revision(parts[0].repository, asked)
        return {"split": parts[0].split, "revision": commit, "files": {}}

    def split_here(self, config: str, data_dir: str | Path | None) -> str:
        """Name the split of a config that a mirror holds; empty if it holds none."""
        folder = mirror.named_folder(data_dir)
        parts = self.parts[config]
        if folder is None or not self._mirrored(parts, folder):
            return ""
        return self._split_of(parts, folder)

    def _split_of(self, parts: tuple[Part, ...], folder: Path) -> str:
        found = [held[0].split for part in parts if (held := part.in_mirror(folder))]
        return " and ".join(dict.fromkeys(found))

    def _mirrored(self, parts: tuple[Part, ...], folder: Path) -> list[Path]:
        """Return the files of a mirror that hold the parts; an empty list if one is missing."""
        found = []
        for part in parts:
            if (held := part.in_mirror(folder)) is not None:
                found.append(held[1])
            elif not part.is_optional:
                return []
        if not found:
            return []
        for part in self.companions:
            if (held := part.in_mirror(folder)) is not None:
                found.append(held[1])
            elif not part.is_optional:
                return []
        if self.text_folders:
            home = folder / parts[0].repository
            if not mirror.text_names(home):
                return []
            names = _texts(home.name, mirror.text_names(home), self.text_folders)
            found += [home / name for name in names]
        return found

    def _of_split(self, config: str, split: str) -> tuple[Part, ...]:
        parts = self.parts[config]
        if not split:
            return parts
        if not is_name(split, _SPLIT):
            raise BadDataset(
                f'dataset "{self.name}": "{split:.200}" is not a valid split', field="split"
            )
        if any(part.file for part in parts):
            raise BadDataset(
                f'dataset "{self.name}" has no splits; leave out "{split}"', field="split"
            )
        return tuple(part.of_split(split) for part in parts)


def is_name(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a text that a client chose can name a file of the mirror, and nothing else."""
    return bool(pattern.fullmatch(text)) and len(text.encode(errors="replace")) <= _MOST_BYTES


def check_revision(dataset: str, revision: str) -> None:
    """Refuse what is no name of a branch, tag or commit."""
    if revision and not _REVISION.fullmatch(revision):
        raise BadDataset(
            f'dataset "{dataset}": "{revision:.200}" is not a valid revision; write a branch, '
            "a tag or a commit",
            field="revision",
        )


def each(make: Callable[[Row, int], Example | None]) -> Mapper:
    """Make a mapping of a function from a row and its position to an example, or None to skip."""
    return each_of_config(lambda row, index, config: make(row, index))


def each_of_config(make: Callable[[Row, int, str], Example | None]) -> Mapper:
    """Make such a mapping of a function that is also told the config."""

    def mapping(rows: Iterator[Row], access: Access) -> Iterator[Example]:
        for index, row in enumerate(rows):
            if (example := make(row, index, access.config)) is not None:
                yield example

    return mapping


def by_config(repository: str, configs: tuple[str, ...], split: str) -> dict[str, tuple[Part, ...]]:
    """Give each config of a repository its one part."""
    return {name: (Part(repository=repository, config=name, split=split),) for name in configs}


def _texts(repository: str, names: list[str], folders: tuple[str, ...]) -> list[str]:
    for folder in folders:
        inside = sorted(n for n in names if n.startswith(f"{folder}/") and n.endswith(".txt"))
        if inside:
            return inside
    raise BadDataset(f"{repository} has no .txt file in {' or '.join(folders)}")
