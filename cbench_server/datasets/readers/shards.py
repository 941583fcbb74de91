"""Shards: the files that a folder or a pattern such as `traces/*.jsonl.gz` stands for."""

import glob
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TypeVar

from cbench_server.datasets.readers.lines import DataFile
from cbench_server.errors import BadDataset

File = TypeVar("File", bound=DataFile)


def is_pattern(path: PurePath) -> bool:
    """Whether a path has wildcards; a file that is called so is asked for first."""
    return glob.has_magic(str(path))


def local_shards(path: Path, suffixes: Iterable[str]) -> list[Path]:
    """Return the files that a folder or a pattern stands for, in the order of their names."""
    if path.is_dir():
        found = [each for each in path.rglob("*") if each.is_file()]
        return checked(found, str(path), suffixes, inside=str(path))
    found = [Path(each) for each in glob.glob(str(path), recursive=True)]
    return checked([each for each in found if each.is_file()], str(path), suffixes)


def checked(
    files: Iterable[File], place: str, suffixes: Iterable[str], inside: str = ""
) -> list[File]:
    """Return the files that hold examples, sorted; refuse none at all, and several formats.

    As elsewhere, names that begin with a dot or an underscore are not data.
    """
    known = sorted(suffixes, key=len, reverse=True)
    chosen = sorted(
        (each for each in files if not _is_hidden(str(each), inside)),
        key=lambda each: str(each),
    )
    formats: dict[str, File] = {}
    shards = []
    for each in chosen:
        ending = next((suffix for suffix in known if each.name.lower().endswith(suffix)), "")
        if ending:
            formats.setdefault(ending.removesuffix(".gz"), each)
            shards.append(each)
    if not shards:
        raise BadDataset(
            f"{place} holds no file that ends in {', '.join(suffixes)}; check the path"
        )
    if len(formats) > 1:
        raise BadDataset(
            f"{place} holds files of several formats ({', '.join(sorted(formats))}), which may be "
            "the same examples twice; name those of one: "
            f"{place.rstrip('/') + '/*' if inside else place}{sorted(formats)[0]}"
        )
    return shards


def _is_hidden(path: str, inside: str) -> bool:
    within = path.removeprefix(inside).strip("/")
    return any(part.startswith((".", "_")) for part in within.split("/")[-1 if not inside else 0 :])


def name_of_shards(path: PurePath) -> str:
    """Name a folder by itself, and a pattern by what comes before its first wildcard."""
    named = path
    while is_pattern(named):
        fixed = named.name
        for wildcard in "*?[":
            fixed = fixed.partition(wildcard)[0]
        if fixed.strip("-_. "):
            return fixed.strip("-_. ")
        named = named.parent
    return named.name or "examples"
