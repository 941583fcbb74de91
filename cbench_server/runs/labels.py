"""Labels: verdicts of people on some rows, from a file."""

import math
from collections.abc import Collection, Iterable

from cbench_server.errors import BadDataset
from cbench_server.runs.verdicts import Key
from cbench_server.types import Example

_WORDS = {"yes": 1.0, "true": 1.0, "correct": 1.0, "no": 0.0, "false": 0.0, "incorrect": 0.0}


class Labels:
    """Verdicts by example, for one system where the file names it."""

    def __init__(self, lines: Iterable[Example]) -> None:
        self._known: dict[tuple[str, str], float] = {}
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
            about = (str(example), str(line.get("system") or ""))
            if self._known.setdefault(about, verdict) != verdict:
                raise BadDataset(
                    f'label {place} is another verdict on "{example}" than one before it; '
                    "where people differ, give their mean"
                )

    def __len__(self) -> int:
        return len(self._known)

    def of(self, key: Key) -> float | None:
        """Return what people said of a row, if they did."""
        _, system, example, _ = key
        return self._known.get((example, system), self._known.get((example, "")))

    def check_ids(self, examples: Iterable[object], systems: Iterable[str]) -> None:
        """Raise BadDataset for a label that will be about no row of these."""
        names = ["", *systems]
        self._check({(str(example), name) for example in examples for name in names})

    def check(self, keys: Iterable[Key]) -> None:
        """Raise BadDataset for a label that is about no row."""
        rows = set(keys)
        met = {(example, system) for _, system, example, _ in rows}
        self._check(met | {(example, "") for example, _ in met})

    def _check(self, met: Collection[tuple[str, str]]) -> None:
        if strange := sorted(set(self._known) - set(met)):
            example, system = strange[0]
            about = f' of system "{system}"' if system else ""
            raise BadDataset(
                f'{len(strange)} of {len(self._known)} labels are about no row, such as "{example}"'
                f"{about}. Ids are those that cbench show prints."
            )


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    return None
