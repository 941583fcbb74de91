"""Answers that are in the store already: those of a run to score anew, or of earlier runs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from cbench_server.digests import canonical_digest
from cbench_server.results import EvalRow
from cbench_server.runstore import RunStore, SpooledExample
from cbench_server.spec import Options, Run, RunSpec
from cbench_server.systems.caller import SystemDescription

Place = tuple[str, int]
"""A run, and an ordinal in it."""

# How far back answers are looked for. An entry takes about 150 bytes while the run lasts.
_MAX_RUNS, _MAX_EXAMPLES = 1000, 500_000


class Recordings(Protocol):
    """Answers that need not be asked for."""

    is_complete: bool
    """Whether a failure is an answer, too, and no system is ever called."""

    async def find(
        self, system: str, examples: Sequence[SpooledExample]
    ) -> Mapping[int, Sequence[Place]]:
        """Say where answers may stand, the newest first, by the ordinals of the examples."""
        ...

    async def read(self, system: str, places: Sequence[Place], repeat: int) -> EvalRow | None:
        """Return the first of those rows that is there and serves, with its processed output."""
        ...


class ParentRows:
    """The rows of one run, all of which are scored anew."""

    is_complete = True

    def __init__(self, store: RunStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id

    async def find(
        self, system: str, examples: Sequence[SpooledExample]
    ) -> Mapping[int, Sequence[Place]]:
        """Every row stands where it stood."""
        return {each.ordinal: [(self._run_id, each.ordinal)] for each in examples}

    async def read(self, system: str, places: Sequence[Place], repeat: int) -> EvalRow | None:
        """See Recordings."""
        run_id, ordinal = places[0]
        return await self._store.read_row(run_id, system, ordinal, repeat)


class EarlierAnswers:
    """What systems of the same identity answered to the same examples in earlier runs."""

    is_complete = False

    def __init__(self, store: RunStore, places: Mapping[str, Mapping[str, list[Place]]]) -> None:
        """`places` are by system, then by the digest of the example."""
        self._store = store
        self._places = places

    async def find(
        self, system: str, examples: Sequence[SpooledExample]
    ) -> Mapping[int, Sequence[Place]]:
        """See Recordings."""
        known = self._places.get(system, {})
        return {each.ordinal: known[each.digest] for each in examples if each.digest in known}

    async def read(self, system: str, places: Sequence[Place], repeat: int) -> EvalRow | None:
        """See Recordings; what failed then is tried again."""
        for run_id, ordinal in places:
            row = await self._store.read_row(run_id, system, ordinal, repeat)
            if row is not None and row.failure is None:
                return row
        return None


async def earlier_answers(store: RunStore, run: Run) -> EarlierAnswers:
    """Collect where the systems of a run answered before, newest runs first.

    A system without an identity, which is one that gives no version, is left out.
    """
    identities = {name: each for name, each in identities_of(run).items() if each}
    places: dict[str, dict[str, list[Place]]] = {name: {} for name in identities}
    room = _MAX_EXAMPLES
    for earlier in await store.list_runs(limit=_MAX_RUNS) if identities else ():
        theirs = identities_of(earlier)
        same = [name for name, each in identities.items() if theirs.get(name) == each]
        if earlier.run_id == run.run_id or not same or room <= 0:
            continue
        digests = await store.example_digests(earlier.run_id, room)
        room -= len(digests)
        for ordinal, digest in enumerate(digests):
            for name in same:
                places[name].setdefault(digest, []).append((earlier.run_id, ordinal))
    return EarlierAnswers(store, places)


def identities_of(run: Run) -> Mapping[str, str]:
    """Return the identity of each system of a run, empty for one that has none."""
    identities: Mapping[str, str] = run.config.get("identities", {})
    return identities


def system_identity(description: SystemDescription, options: Options, spec: RunSpec) -> str:
    """Digest all that an answer depends on, the example apart; empty without a version."""
    if not description.version:
        return ""
    identity: dict[str, Any] = {
        "name": description.name,
        "version": description.version,
        "options": options,
        "reader": asdict(spec.reader) if spec.reader else None,
        "is_exposed": spec.expose_reference_fields,
        "withheld": sorted(spec.reference_fields),
        # A row keeps its token counts, too.
        "tokenizer": spec.tokenizer,
        "text_fields": sorted(spec.text_fields),
    }
    return canonical_digest(identity)
