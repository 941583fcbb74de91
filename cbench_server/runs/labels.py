"""Labels: verdicts of people on some rows, from a file."""

import math
from collections.abc import Collection, Iterable

from cbench_server.errors import BadDataset
from cbench_server.runs.verdicts import Key
from cbench_server.types import Example

_WORDS = {"yes": 1.0, "true": 1.0, "correct": 1.0, "no": 0.0, "false": 0.0, "incorrect": 0.0}


About = tuple[str, str, str]
"""Dataset and example, and the system or nothing where all are meant."""


class Labels:
    """Verdicts by example, for one system and of one dataset where the file names them."""

    def __init__(self, lines: Iterable[Example]) -> None:
        self._known: dict[About, float] = {}
        for place, line in enumerate(lines, 1):
            example = line.get("example_id", line.get("id"))
            if example is None or "verdict" not in line:
                raise BadDataset(
                    f"label {place} should have example_id and verdict, and the system it is about"
                )
            verdict = _number(line["verdict"])
            if verdict is None:
                raise BadDataset(
                    f"label {place} has the verdict {line['verdict']!r:.50}; it should be yes or "
                    "no, or a number from 0 to 1"
                )
            about = (
                str(line.get("dataset") or ""),
                str(example),
                str(line.get("system") or ""),
            )
            if self._known.setdefault(about, verdict) != verdict:
                raise BadDataset(
                    f'label {place} is another verdict on "{example}" than one before it; '
                    "where people differ, give their mean"
                )

    def __len__(self) -> int:
        return len(self._known)

    def of(self, key: Key) -> float | None:
        """Return what people said of a row, if they did."""
        dataset, system, example, _ = key
        for about in _abouts(dataset, example, system):
            if about in self._known:
                return self._known[about]
        return None

    def check_ids(self, examples: Iterable[tuple[str, object]], systems: Iterable[str]) -> None:
        """Raise BadDataset for a label that will be about no row of these, or of several datasets.

        Examples are given with their datasets.
        """
        names = list(systems)
        met: dict[About, str] = {}
        for dataset, example in dict.fromkeys(examples):
            for about in {each for name in names for each in _abouts(dataset, example, name)}:
                other = met.setdefault(about, dataset)
                if other != dataset and about in self._known:
                    raise BadDataset(
                        f'the label on "{example}" may be of dataset {other} or {dataset}, which '
                        'both have such an example; say which by its "dataset"'
                    )
        self._check(met)

    def check(self, keys: Iterable[Key]) -> None:
        """Raise BadDataset for a label that is about no row."""
        rows = {key[:3] for key in keys}
        self._check(
            {
                each
                for dataset, system, example in rows
                for each in _abouts(dataset, example, system)
            }
        )

    def _check(self, met: Collection[About]) -> None:
        if strange := sorted(set(self._known) - set(met)):
            dataset, example, system = strange[0]
            about = f' of system "{system}"' if system else ""
            about += f' of dataset "{dataset}"' if dataset else ""
            raise BadDataset(
                f'{len(strange)} of {len(self._known)} labels are about no row, such as "{example}"'
                f"{about}. Ids are those that cbench show prints."
            )


def _abouts(dataset: str, example: object, system: str) -> list[About]:
    """Return what a label about a row may say that it is about, the most exact first."""
    names = dict.fromkeys((dataset, dataset.partition(":")[0], ""))
    return [(name, str(example), each) for name in names for each in (system, "")]


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    return None
