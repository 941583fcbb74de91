"""Cached answers of one system in a local evaluation: taken, scored anew where needed, and kept."""

import asyncio
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cbench_server import __version__
from cbench_server.contract import name_of
from cbench_server.metrics.groups import groups_of
from cbench_server.results import EvalRow
from cbench_server.runs.context_tokens import row_tells_context
from cbench_server.runs.identity import changed_attributes, identity_of, identity_of_evaluator
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.recorded_rows import set_scores
from cbench_server.runs.row_cache import KeptAnswer, RowCache
from cbench_server.runs.store import SpooledExample
from cbench_server.scoring.placement import ScoredRow, Scoring
from cbench_server.types import Evaluator

_SCORED_AT_ONCE = 32


class SystemCache:
    """The answers of one system, as it was before it was called."""

    def __init__(
        self,
        cache: RowCache,
        system: Any,
        settings: str,
        plans: Mapping[str, DatasetPlan],
        content: Callable[[SpooledExample], str],
    ) -> None:
        """`settings` and `content` are what an answer depends on, beside the system."""
        self._cache = cache
        self._system = system
        self._identity = identity_of(system)
        self._settings = settings
        self._plans = plans
        self._content = content
        self._evaluators = {
            tag: [identity_of_evaluator(each) for each in plan.evaluators]
            for tag, plan in plans.items()
        }
        if self._identity.why:
            warnings.warn(
                f"nothing of {_name(system)} is cached, for what it answers depends on more than "
                f"can be known: {self._identity.why}",
                stacklevel=2,
            )

    async def known(
        self, examples: Sequence[SpooledExample], repeats: int, scoring: Scoring
    ) -> list[EvalRow]:
        """Return the rows whose answers are stored; no try stands in for another."""
        permits = asyncio.Semaphore(_SCORED_AT_ONCE)

        async def row_of(entry: SpooledExample, repeat: int) -> EvalRow | None:
            async with permits:
                key = self._key(entry, repeat)
                kept = self._cache.get(key) if key else None
                return await self._scored(key, kept, entry, scoring) if kept else None

        if not self._identity.digest:
            return []
        asked = [row_of(entry, repeat) for entry in examples for repeat in range(repeats)]
        return [row for row in await asyncio.gather(*asked) if row is not None]

    def keep(self, entry: SpooledExample, row: EvalRow) -> None:
        """Store a new row; one that failed is tried again next time."""
        key = self._key(entry, row.repeat)
        if key and row.failure is None:
            scored = ScoredRow(row.scores, row.details, row.evaluator_failures)
            self._put(key, KeptAnswer(row), row.dataset, scored)

    def warn_of_changes(self) -> None:
        """Say so where the system has become another one while it worked."""
        if not self._identity.digest:
            return
        now = identity_of(self._system)
        names = ", ".join(f"`{name}`" for name in changed_attributes(self._identity, now))
        if names:
            warnings.warn(
                f"{_name(self._system)} changes its {names} as it works, so this same object finds "
                "none of these answers in the cache again. Give it `options`, a dict of what its "
                "constructor was given, by which it is known instead.",
                stacklevel=2,
            )

    def _key(self, entry: SpooledExample, repeat: int) -> str:
        content = self._content(entry)
        if not content or not self._identity.digest:
            return ""
        tries = [str(repeat)] if repeat else []
        return "\n".join([__version__, content, self._settings, self._identity.digest, *tries])

    async def _scored(
        self, key: str, kept: KeptAnswer, entry: SpooledExample, scoring: Scoring
    ) -> EvalRow:
        """Give a stored answer its place and the scores of this evaluation's evaluators."""
        plan, identities = self._plans[entry.dataset], self._evaluators[entry.dataset]
        earlier = kept.scoring_for([each.digest for each in identities if each.digest])
        rest = [
            evaluator
            for evaluator, identity in zip(plan.evaluators, identities, strict=True)
            if identity.digest not in earlier.evaluators
        ]
        scored, seconds = ScoredRow({}, {}, {}), kept.row.scoring_time
        if rest:
            started = time.monotonic()
            scored = await self._score(rest, earlier.scores, plan, entry, kept.row, scoring)
            seconds = time.monotonic() - started
        scored.scores = {**earlier.scores, **scored.scores}
        scored.details = {**earlier.details, **scored.details}
        row = replace(
            kept.row, ordinal=entry.ordinal, index=entry.index, dataset=entry.dataset, reused=True
        )
        row.groups = groups_of(entry.example, plan.groups)
        if rest:
            self._put(key, kept, entry.dataset, scored)
        set_scores(row, entry.example, scored, plan, seconds)
        return row

    async def _score(
        self,
        rest: Sequence[Evaluator],
        earlier: Mapping[str, float],
        plan: DatasetPlan,
        entry: SpooledExample,
        row: EvalRow,
        scoring: Scoring,
    ) -> ScoredRow:
        pair = entry.example, row.processed or {}
        is_told = row_tells_context(row, entry.example)
        scored = await scoring.score_row(rest, *pair, tells_context=is_told)
        if earlier.keys() & scored.scores.keys():
            # Which of equal scores counts is decided by the order of all evaluators.
            scored = await scoring.score_row(plan.evaluators, *pair, tells_context=is_told)
        return scored

    def _put(self, key: str, kept: KeptAnswer, tag: str, scored: ScoredRow) -> None:
        """Store an answer with its scores, unless an evaluator failed or cannot be known."""
        identities = [each.digest for each in self._evaluators[tag]]
        if all(identities) and not scored.failures:
            kept = kept.with_scoring(identities, scored)
        self._cache.put(key, kept)


def _name(system: Any) -> str:
    return f'system "{name_of(system) or type(system).__name__}"'
