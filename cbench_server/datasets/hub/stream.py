"""Rows from the hub, streamed through the `datasets` library; no code of a dataset is executed."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from cbench_server.datasets.readers.files import iterate_file
from cbench_server.datasets.readers.parquet_file import plain
from cbench_server.lazy_imports import require
from cbench_server.types import Example

_TIMEOUT_S = 10.0
# The libraries try again for half a minute before they say that nobody is there.
_REACH_S = 2.0
_PORTS = {"http": 80, "https": 443}

_reached: set[str] = set()


def stream_rows(
    repository: str,
    config: str,
    split: str,
    revision: str,
    url: str = "",
    schema: tuple[tuple[str, str], ...] = (),
) -> Iterator[Example]:
    """Stream the rows of a split, downloading no more than is asked for.

    `url` names a file of the repository that holds them as JSON, `zip://INSIDE::FILE` one in
    an archive, and `{split}` in it is the split; without a url the repository is a dataset by
    its own description. `schema` names the columns at the url, and types such as `string[]`.
    """
    require_hub(repository)
    _reach_hub()
    # Imported here because it takes a second and a run from a mirror never needs it.
    from datasets import load_dataset

    _hush()
    if url:
        inside, _, name = url.format(split=split).rpartition("::")
        home = f"hf://datasets/{repository}{'@' + revision if revision else ''}/{name}"
        files = {split: f"{inside}::{home}" if inside else home}
        rows: Any = load_dataset(
            "json", data_files=files, split=split, streaming=True, features=_features(schema)
        )
    else:
        rows = load_dataset(
            repository, config or None, split=split, revision=revision or None, streaming=True
        )
    for row in rows:
        yield plain(row)


def require_hub(repository: str) -> None:
    """Raise InvalidInput, with the way out, if the libraries of the hub are not installed."""
    require("datasets", f"{repository} is read from the hub with the package")


def _features(schema: tuple[tuple[str, str], ...]) -> Any:
    from datasets import Features, List, Value

    def kind(name: str) -> Any:
        return List(Value(name.removesuffix("[]"))) if name.endswith("[]") else Value(name)

    return Features({column: kind(name) for column, name in schema}) if schema else None


def _hush() -> None:
    """Keep the hub's library from logging every retry; our error says how it ended."""
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call] # the library has no type for it


def file_rows(repository: str, name: str, revision: str) -> Iterator[Example]:
    """Fetch a JSON file of a repository, and iterate its objects."""
    yield from iterate_file(fetch(repository, name, revision), assume=".json")


def fetch(repository: str, name: str, revision: str) -> Path:
    """Return the local path of a file of a repository; it is fetched at most once."""
    require_hub(repository)
    from huggingface_hub import hf_hub_download

    _hush()
    try:
        _reach_hub()
    except ConnectionError:
        if not _is_cached(repository, name, revision):
            raise
    path = hf_hub_download(repository, name, repo_type="dataset", revision=revision or None)
    return Path(str(path))


def _is_cached(repository: str, name: str, revision: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, name, repo_type="dataset", revision=revision or None)
    return isinstance(found, str)


def _reach_hub() -> None:
    """Raise ConnectionError at once where the hub, or the proxy to it, cannot be reached."""
    from huggingface_hub import constants

    endpoint = constants.ENDPOINT
    if constants.HF_HUB_OFFLINE or endpoint in _reached:
        return
    asked = urlsplit(endpoint)
    proxy = "" if proxy_bypass(asked.hostname or "") else getproxies().get(asked.scheme, "")
    gate = urlsplit(proxy) if "://" in proxy else asked
    place = gate.hostname or "", gate.port or _PORTS.get(gate.scheme, 443)
    problem = ["no answer"]

    def connect() -> None:
        try:
            socket.create_connection(place, _REACH_S).close()
            problem.clear()
        except OSError as error:
            problem[0] = error.strerror or str(error)

    # In a thread, because looking up a name has no time limit.
    thread = threading.Thread(target=connect, name="cbench-hub", daemon=True)
    thread.start()
    thread.join(_REACH_S)
    if problem:
        where = ":".join(map(str, place)) if gate is not asked else endpoint
        raise ConnectionError(f"cannot reach {where}: {problem[0]}")
    _reached.add(endpoint)


def file_names(repository: str, revision: str) -> list[str]:
    """List the files of a repository."""
    require_hub(repository)
    from huggingface_hub import HfApi

    _reach_hub()
    return HfApi().list_repo_files(repository, repo_type="dataset", revision=revision or None)


def resolved_revision(repository: str, revision: str) -> str:
    """Return the commit a revision stands for, or the revision itself if the hub does not say."""
    require_hub(repository)
    from huggingface_hub import HfApi

    try:
        _reach_hub()
        info = HfApi().dataset_info(repository, revision=revision or None, timeout=_TIMEOUT_S)
    except Exception:
        # The library also passes on the errors of its HTTP client. Reading the rows, which
        # comes next, reports what is wrong.
        return revision
    return info.sha or revision
