"""Errata: known mistakes of a dataset, and what scores would be without them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    digest: str = ""
    """What the source is known by that it was found in; empty means any."""
    reason: str = ""
    source: str = ""


class Errata:
    """The corrections of one file."""

    def __init__(self, lines: Iterable[Example]) -> None:
        self._by_id: dict[tuple[str, str], Erratum] = {}
        for place, line in enumerate(lines, 1):
            erratum = _read(line, place)
            self._by_id[erratum.dataset, erratum.example_id] = erratum

    def __len__(self) -> int:
        return len(self._by_id)

    def of(self, dataset: str, example_id: object) -> Erratum | None:
        """Return what is known of an example, if something is."""
        known = self._by_id.get((dataset, str(example_id)))
        if known is None:
            known = self._by_id.get((dataset.partition(":")[0], str(example_id)))
        return known or self._by_id.get(("", str(example_id)))

    def check(
        self, ids: Mapping[str, Iterable[object]], digests: Mapping[str, frozenset[str]]
    ) -> None:
        """Raise BadDataset for a correction of no example, or of another source.

        `ids` are all examples of each dataset, `digests` what each source is known by.
        """
        known = {label: {str(each) for each in found} for label, found in ids.items()}
        for erratum in self._by_id.values():
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
    answers = tuple(references({"answers": line.get("answers", line.get("answer"))}))
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


def corrected(example: Example, erratum: Erratum) -> Example | None:
    """Return the example with its mistake mended; None if it is to be left out."""
    if erratum.action == "exclude":
        return None
    if erratum.action == "evidence":
        return example
    answers = list(erratum.answers)
    if erratum.action == "accept_also":
        answers = [*references(example), *answers]
    return {**example, "answers": answers, "answer": answers[0]}


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

    def take(self, category: str, erratum: Erratum | None) -> None:
        """Add an example."""
        for name in dict.fromkeys(("", category)):
            self._rows[name] += 1
            self._wrong[name] += erratum is not None and erratum.action in _LOWERS_CEILING

    def describe(self) -> dict[str, Any]:
        """Return the ceilings."""
        return {name: 1 - self._wrong[name] / rows for name, rows in self._rows.items()}
