"""Answers of earlier runs, for systems and examples that are the same."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cbench_server.results import EvalRow
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.store import RowKey, RunStore, SpooledExample
from cbench_server.spec import Options, Run, RunSpec, plain_spec
from cbench_server.systems.caller import SystemDescription

Place = tuple[str, int]
"""A run, and an ordinal in it."""
Told = Literal["instruction", "prompt"]
"""What a row depends on: a whole prompt where a model was asked, else at most its instruction."""
Prompts = Mapping[str, tuple[Told, Mapping[str, str]]]
"""What each system of a run was told, as digests by dataset."""

# How far back answers are looked for. An entry takes about 150 bytes while the run lasts.
_MAX_RUNS, _MAX_EXAMPLES = 1000, 500_000


class EarlierAnswers:
    """What systems of the same identity answered to the same examples in earlier runs."""

    def __init__(
        self,
        store: RunStore,
        places: Mapping[str, Mapping[str, list[Place]]],
        prompts: Mapping[str, "Prompts"],
        run_id: str,
    ) -> None:
        """`places` are by system, then by the digest of the example, the newest first.

        `prompts` say for each run, this one included, what its systems were told.
        """
        self._store = store
        self._places = places
        self._prompts = prompts
        self._run_id = run_id

    async def read(
        self, system: str, wanted: Sequence[tuple[SpooledExample, int]]
    ) -> list[EvalRow | None]:
        """Return for each example and repeat a row with its processed output, if there is one.

        What failed then does not serve: it is tried again.
        """
        known = self._places.get(system, {})
        found: list[EvalRow | None] = [None] * len(wanted)
        left = {
            n: [
                place
                for place in known.get(spooled.digest, ())
                if self._is_told(place, system, spooled)
            ]
            for n, (spooled, _) in enumerate(wanted)
        }
        while left := {n: places for n, places in left.items() if places}:
            keys = [RowKey(*places.pop(0), system, wanted[n][1]) for n, places in left.items()]
            for n, row in zip(left.copy(), await self._store.read_rows_at(keys), strict=True):
                if row is not None and row.failure is None:
                    found[n] = row
                    del left[n]
        return found

    def _is_told(self, place: Place, system: str, spooled: SpooledExample) -> bool:
        """Whether the system, or the model that reads for it, was told then what it is told now."""
        told, now = self._prompts[self._run_id].get(system, (None, {}))
        told_then, then = self._prompts[place[0]].get(system, (None, {}))
        if told_then is None:
            # Of systems that knew no instruction: one that does has another version.
            return told != "prompt"
        return told == told_then and now.get(spooled.dataset) == then.get(spooled.dataset)


async def earlier_answers(store: RunStore, run: Run) -> EarlierAnswers:
    """Collect where the systems of a run answered before, newest runs first.

    A system without an identity, which is one that gives no version, is left out.
    """
    identities = {name: each for name, each in identities_of(run).items() if each}
    places: dict[str, dict[str, list[Place]]] = {name: {} for name in identities}
    prompts = {run.run_id: _prompts_of(run)}
    room = _MAX_EXAMPLES
    for earlier in await store.list_runs(limit=_MAX_RUNS) if identities else ():
        theirs = identities_of(earlier)
        same = [name for name, each in identities.items() if theirs.get(name) == each]
        if earlier.run_id == run.run_id or not same or room <= 0:
            continue
        digests = await store.example_digests(earlier.run_id, room)
        room -= len(digests)
        prompts[earlier.run_id] = _prompts_of(earlier)
        for ordinal, digest in enumerate(digests):
            for name in same:
                places[name].setdefault(digest, []).append((earlier.run_id, ordinal))
    return EarlierAnswers(store, places, prompts, run.run_id)


def _prompts_of(run: Run) -> Prompts:
    """Return what each system was told; none of them in runs before there were prompts."""
    recorded: Mapping[str, Any] = run.config.get("prompts", {})
    digests = {label: each["digest"] for label, each in recorded.get("datasets", {}).items()}
    return {system: (told, digests) for system, told in recorded.get("told", {}).items()}


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
        "reader": plain_spec(spec.reader) if spec.reader else None,
        "is_exposed": spec.expose_reference_fields,
        "withheld": sorted(spec.reference_fields),
        # A row keeps its token counts, too.
        "tokenizer": spec.tokenizer,
        "text_fields": sorted(spec.text_fields),
    }
    return canonical_digest(identity)
