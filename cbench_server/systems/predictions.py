"""Predictions: outputs that exist already, published or home-made, as a system."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from cbench_server.errors import CallFailed, InvalidInput
from cbench_server.results import Failure
from cbench_server.types import Example

OUTPUTS = ("response", "context", "responses")
"""The fields of which a prediction has at least one."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Predictions:
    """Answers each example with what a file holds for its id.

    The outputs are kept in a temporary file, so that a million of them take no
    memory. A prediction that names its `dataset` answers only for that one, and
    ids are compared as text where their types differ, since CSV knows no numbers.
    """

    description = "Outputs from a file; nothing is called."

    def __init__(self, name: str, version: str, outputs: Iterable[Example]) -> None:
        self.name = name
        self.version = version
        # Without a name SQLite keeps a file of its own and removes it. Calls come one at a time.
        self._file = sqlite3.connect("", check_same_thread=False)
        self._file.execute(
            "CREATE TABLE output (dataset TEXT, id TEXT, fields BLOB, PRIMARY KEY (dataset, id))"
        )
        for output in outputs:
            self._add(output)

    def _add(self, output: Mapping[str, Any]) -> None:
        if output.get("id") is None:
            raise InvalidInput(
                f"a prediction of {self.name} has no id; give each the id of its example. "
                f"It has: {', '.join(output)}"
            )
        own = {name: value for name, value in output.items() if name not in ("id", "dataset")}
        if not any(own.get(name) is not None for name in OUTPUTS):
            raise InvalidInput(
                f'prediction "{output["id"]}" of {self.name} has neither response nor context; '
                f"it has: {', '.join(own) or 'nothing'}. Rename the field that holds the output."
            )
        key = (str(output.get("dataset") or ""), str(output["id"]))
        try:
            self._file.execute("INSERT INTO output VALUES (?, ?, ?)", (*key, _encode(own)))
        except sqlite3.IntegrityError:
            raise InvalidInput(
                f'{self.name} has two predictions for the id "{output["id"]}"; keep one of them, '
                "or name the dataset of each"
            ) from None

    def process(self, example: Example) -> Example:
        dataset = str(example.get("dataset") or "")
        found = self._file.execute(
            "SELECT fields FROM output WHERE id = ? AND dataset IN (?, '') ORDER BY dataset DESC",
            (str(example["id"]), dataset),
        ).fetchone()
        if found is None:
            message = f'there is no prediction for the id "{example["id"]}"'
            raise CallFailed(Failure("system", "NO_PREDICTION", message))
        own: Example = _decode(found[0])
        # A prediction without a context says nothing of what became of it.
        kept = {name: value for name, value in example.items() if name != "context"}
        return {**kept, **own}

    async def close_connections(self) -> None:
        """Remove the file; called when the run lets go of its systems."""
        self._file.close()
