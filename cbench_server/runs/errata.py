"""Errata: known mistakes of a dataset, and what scores would be without them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from cbench_server.errors import BadDataset
from cbench_server.texts.answers import references
from cbench_server.types import Example

ACTIONS = ("exclude", "replace", "accept_also", "evidence")
# By these a reference is admitted to be wrong, so that a right answer scores nothing.
_LOWERS_CEILING = ("exclude", "replace")


@dataclass(frozen=True)
class Erratum:
    """One correction."""

    dataset: str
    """A label, or empty for all datasets of the run."""
    example_id: str
    action: str
    answers: tuple[str, ...] = ()
    """Of `evidence`, the texts that hold the answer, where the correction has them."""
    digest: str = ""
    """What the source is known by that it was found in; empty means any."""
    reason: str = ""
    source: str = ""


class Errata:
    """The corrections of one file."""

    def __init__(self, lines: Iterable[Example]) -> None:
        self._by_id: dict[tuple[str, str], list[Erratum]] = {}
        for place, line in enumerate(lines, 1):
            erratum = _read(line, place)
            self._by_id.setdefault((erratum.dataset, erratum.example_id), []).append(erratum)

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    def of(self, dataset: str, example_id: object) -> Sequence[Erratum]:
        """Return what is known of an example, in the order of the file."""
        names = dict.fromkeys((dataset, dataset.partition(":")[0], ""))
        return [each for name in names for each in self._by_id.get((name, str(example_id)), ())]

    def check(
        self, ids: Mapping[str, Iterable[object]], digests: Mapping[str, frozenset[str]]
    ) -> None:
        """Raise BadDataset for a correction of no example, or of another source.

        `ids` are all examples of each dataset, `digests` what each source is known by.
        """
        known = {label: {str(each) for each in found} for label, found in ids.items()}
        for erratum in chain.from_iterable(self._by_id.values()):
            labels = [
                label for label in known if erratum.dataset in ("", label, label.partition(":")[0])
            ]
            if not any(erratum.example_id in known[label] for label in labels):
                where = f'dataset "{erratum.dataset}"' if erratum.dataset else "any dataset"
                raise BadDataset(
                    f'the errata correct "{erratum.example_id}" of {where}, which has no such '
                    f"example. Datasets of this run: {', '.join(known)}"
                )
            if erratum.digest and not any(erratum.digest in digests[label] for label in labels):
                have = ", ".join(sorted(each for label in labels for each in digests[label]))
                raise BadDataset(
                    f'the correction of "{erratum.example_id}" is for the source '
                    f"{erratum.digest}; this one is known by {have or 'no digest'}"
                )


def _read(line: Example, place: int) -> Erratum:
    action = str(line.get("action") or "")
    if not action:
        given = [name for name in ACTIONS if line.get(name)]
        action = given[0] if len(given) == 1 else ""
    example = line.get("example_id", line.get("id"))
    if example is None or action not in ACTIONS:
        raise BadDataset(
            f"correction {place} should have an example_id and one action of: {', '.join(ACTIONS)}"
        )
    texts: object = line.get("answers", line.get("answer"))
    if action == "evidence":
        texts = line.get("evidence", texts)
    # `"evidence": true` only says that it is wrong.
    answers = () if isinstance(texts, bool) else tuple(references({"answers": texts}))
    if action in ("replace", "accept_also") and not answers:
        raise BadDataset(f'correction {place} of "{example}" has no answers to {action}')
    return Erratum(
        dataset=str(line.get("dataset") or ""),
        example_id=str(example),
        action=action,
        answers=answers,
        digest=str(line.get("source_digest") or line.get("digest") or ""),
        reason=str(line.get("reason") or ""),
        source=str(line.get("source") or ""),
    )


def corrected(example: Example, known: Sequence[Erratum]) -> Example | None:
    """Return the example with its mistakes mended; None if it is to be left out."""
    for erratum in known:
        if erratum.action == "exclude":
            return None
        if erratum.action == "evidence":
            if erratum.answers:
                example = {**example, "evidence": list(erratum.answers)}
            continue
        answers = list(erratum.answers)
        if erratum.action == "accept_also":
            answers = [*references(example), *answers]
        example = {**example, "answers": answers, "answer": answers[0]}
    return example


def texts_in(described: Any) -> list[str]:
    """Return every text in a description, among which are the digests of a source."""
    if isinstance(described, str):
        return [described] if described else []
    if isinstance(described, Mapping):
        described = list(described.values())
    if isinstance(described, list | tuple):
        return [text for each in described for text in texts_in(each)]
    return []


class Ceilings:
    """The best score that references as published allow, by category; "" is all."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()

    def take(self, category: str, known: Sequence[Erratum]) -> None:
        """Add an example, with what is known of it."""
        is_wrong = any(erratum.action in _LOWERS_CEILING for erratum in known)
        for name in dict.fromkeys(("", category)):
            self._rows[name] += 1
            self._wrong[name] += is_wrong

    def describe(self) -> dict[str, Any]:
        """Return the ceilings."""
        return {name: 1 - self._wrong[name] / rows for name, rows in self._rows.items()}
