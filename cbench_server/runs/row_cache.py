"""Rows kept between calls of `evaluate()`, keyed by content and never by names alone."""

import hashlib
import inspect
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from cbench_server.contract import info_of
from cbench_server.results import EvalRow

_decoder = msgspec.msgpack.Decoder(EvalRow)


class RowCache:
    """One small file per row, put in place whole, so that processes may share a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> EvalRow | None:
        """Return the row stored under `key`, or None; a damaged file counts as none."""
        try:
            return _decoder.decode(self._path(key).read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def put(self, key: str, row: EvalRow) -> None:
        """Store a row; one that cannot be encoded is not kept."""
        try:
            body = msgspec.msgpack.encode(row)
        except (TypeError, OverflowError, UnicodeEncodeError):
            return
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        os.replace(temporary, path)

    def _path(self, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest}.row"


def component_identity(component: Any) -> str | None:
    """Say what a component is: its name, and its version or else its source and settings.

    None where neither can be had, so that nothing of it is ever reused by mistake.
    """
    name = f"{type(component).__qualname__}:{component.name}"
    version = info_of(component).version
    try:
        source = version if version else inspect.getsource(type(component))
        settings = msgspec.json.encode(
            {key: value for key, value in vars(component).items() if not key.startswith("__")},
            order="deterministic",
        )
    except (OSError, TypeError, OverflowError, UnicodeEncodeError):
        if version:
            return f"{name}:{version}"
        return None
    return f"{name}:{source}:{settings.decode()}"
