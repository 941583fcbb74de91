"""Row cache: answers kept between calls of `evaluate()`, with what evaluators said of them.

An answer is known by all that can be known to decide it, never by names alone. A
scoring is kept with the identities of the evaluators that made it, so that a new
evaluator scores the stored answer, and nothing else is called.
"""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cbench_server.durable.files import put_in_place
from cbench_server.errors import InvalidInput, Unencodable
from cbench_server.results import EvalRow
from cbench_server.scoring.placement import ScoredRow
from cbench_server.texts.plain import require_plain
from cbench_server.types import Scores


@dataclass(frozen=True)
class KeptScoring:
    """What some evaluators said, without a failure among them."""

    evaluators: list[str]
    """Their identities, in order."""
    scores: Scores
    details: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptAnswer:
    """A row, and every scoring that was made of its answer."""

    row: EvalRow
    scorings: list[KeptScoring] = field(default_factory=list)

    def scoring_for(self, evaluators: Sequence[str]) -> KeptScoring:
        """Return the scoring that has most of the evaluators, and no others; maybe an empty one."""
        fitting = [each for each in self.scorings if {*each.evaluators} <= {*evaluators}]
        return max(fitting, key=lambda each: len(each.evaluators), default=KeptScoring([], {}))

    def with_scoring(self, evaluators: Sequence[str], scored: ScoredRow) -> "KeptAnswer":
        """Add a scoring, in place of an earlier one by the same evaluators."""
        others = [each for each in self.scorings if each.evaluators != [*evaluators]]
        new = KeptScoring([*evaluators], scored.scores, scored.details)
        return KeptAnswer(self.row, [*others, new])


_decoder = msgspec.msgpack.Decoder(KeptAnswer)


class RowCache:
    """One small file per answer, put in place whole, so that processes may share a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"cache_dir {self._folder} is not a folder that can be used: {error.strerror}."
            ) from error

    def get(self, key: str) -> KeptAnswer | None:
        """Return what is stored under `key`, or None; a damaged file counts as none."""
        try:
            return _decoder.decode(self._path(key).read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def put(self, key: str, answer: KeptAnswer) -> None:
        """Store an answer; one that cannot be stored without loss is not kept."""
        try:
            require_plain(answer.row.processed or {})
            body = msgspec.msgpack.encode(answer)
        except (TypeError, OverflowError, UnicodeEncodeError, Unencodable):
            return
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            # A damaged file counts as none.
            put_in_place("cached-row", file, Path(temporary), path, is_synced=False)

    def _path(self, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest}.answer"
