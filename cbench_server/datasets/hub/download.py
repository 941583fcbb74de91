"""Downloads from the hub into a mirror, and a later check that its files are unchanged."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from cbench_server.datasets.hub import mirror
from cbench_server.datasets.hub.sources import Access, HubSource, Part
from cbench_server.errors import BadDataset

# The form of sha256sum, which can check it as well.
DIGESTS = "SHA256SUMS"


def download(
    source: HubSource, config: str, folder: Path, *, revision: str = "", limit: int | None = None
) -> Iterator[Path]:
    """Copy what a config needs into a mirror, and yield each file once it is complete.

    An existing file is kept. `limit` is the number of rows to copy of each part; a file that is
    read as it is gets copied whole.
    """
    access = Access(source.name, None, revision)
    for part in (*source.parts[config], *source.companions):
        if mirror.find(folder, part.stems[:1], part.path) is None:
            yield _download_part(access, part, folder, limit)
    if source.text_folders:
        repository = source.parts[config][0].repository
        if not mirror.text_names(folder / repository):
            for name, path in access.text_files(repository, source.text_folders):
                yield _kept(folder, f"{repository}/{name}", partial(shutil.copyfile, path))


def _download_part(access: Access, part: Part, folder: Path, limit: int | None) -> Path:
    if part.file:
        path = access.file(part)
        return _kept(folder, part.path, lambda to: shutil.copyfile(path, to))

    def write(to: Path) -> None:
        # No time in the header: the same rows make the same file.
        with to.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:
            for row in islice(access.rows(part), limit):
                stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    return _kept(folder, f"{part.stems[0]}.jsonl.gz", write)


def _kept(folder: Path, name: str, write: Callable[[Path], object]) -> Path:
    """Write a temporary file, note its digest, and move it into place."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    try:
        write(unfinished)
        known = read_digests(folder) | {name: mirror.digest(unfinished).partition(":")[2]}
        lines = "".join(f"{digest}  {file}\n" for file, digest in sorted(known.items()))
        (folder / DIGESTS).write_text(lines, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def read_digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file that was downloaded into a mirror."""
    path = folder / DIGESTS
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def check(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each downloaded file of a mirror and its fault; an empty text means that it is good."""
    known = read_digests(folder)
    if not known:
        raise BadDataset(f"{folder} has no {DIGESTS}; cbench datasets download writes it")
    for name, digest in known.items():
        path = folder / name
        if not path.is_file():
            yield name, "missing"
        else:
            yield name, "" if mirror.digest(path) == f"sha256:{digest}" else "changed"
