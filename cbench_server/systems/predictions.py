"""Predictions: outputs that exist already, published or home-made, as a system."""

import os
from collections.abc import Iterable, Mapping
from tempfile import TemporaryFile
from typing import Any

import msgspec

from cbench_server.errors import CallFailed, InvalidInput
from cbench_server.results import Failure
from cbench_server.systems.caller import PREDICTIONS
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.types import Example

OUTPUTS = ("response", "context", "responses")
"""The fields of which a prediction has at least one."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Predictions:
    """Answers each example with what a file holds for its id.

    The outputs are kept in a temporary file, and only their places in memory. A
    prediction that names its `dataset` answers only for that one, and ids are
    compared as text, since CSV knows no numbers.
    """

    description = "Outputs from a file; nothing is called."

    def __init__(self, name: str, outputs: Iterable[Example], version: str = "") -> None:
        self.name = name
        self.version = version
        self._file = TemporaryFile()  # noqa: SIM115 - it lives as long as the system
        self._places: dict[tuple[str, str], tuple[int, int]] = {}
        self._end = 0
        for output in outputs:
            self._add(output)
        self._file.flush()

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
        if key in self._places:
            raise InvalidInput(
                f'{self.name} has two predictions for the id "{output["id"]}"; keep one of them, '
                "or name the dataset of each"
            )
        packed = _encode(own)
        self._file.write(packed)
        self._places[key] = (self._end, len(packed))
        self._end += len(packed)

    def process(self, example: Example) -> Example:
        number = str(example["id"])
        place = self._places.get((str(example.get("dataset") or ""), number))
        place = place or self._places.get(("", number))
        if place is None:
            message = f'there is no prediction for the id "{example["id"]}"'
            raise CallFailed(Failure("system", "NO_PREDICTION", message))
        start, length = place
        own: Example = _decode(os.pread(self._file.fileno(), length, start))
        # A prediction without a context says nothing of what became of it.
        kept = {name: value for name, value in example.items() if name != "context"}
        return {**kept, **own}

    def close(self) -> None:
        """Remove the file; it goes with the object at the latest."""
        self._file.close()


class PredictionsCaller(InProcessCaller):
    """Calls predictions that belong to one run, and end with it."""

    def __init__(self, predictions: Predictions) -> None:
        super().__init__(predictions, inline=True, location=PREDICTIONS)
        self._predictions = predictions

    async def close(self) -> None:
        """See Caller."""
        await super().close()
        self._predictions.close()
