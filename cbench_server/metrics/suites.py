"""Figures of suites: the published mean over several datasets, each by its own primary score."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra, Labels
from cbench_server.metrics.stats.combination import combined
from cbench_server.metrics.stats.estimate import Estimate, estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame
    from cbench_server.metrics.stats.scored_rows import Flags, ScoredRows

PREFIX = "suite:"
PART = "suite_part:"
"""Begins the keys of what a suite's mean would be called, had it been run whole."""
UNSCORED = "suite_unscored:"


@dataclass(frozen=True)
class Suite:
    """Which datasets are parts of a suite, and how their figures become one."""

    label: str
    kind: Literal["macro", "micro", "categories"]
    parts: Mapping[str, str] = field(default_factory=dict)
    """The category of each dataset, by its label; empty where there are none."""
    bucket: str = ""
    """A field of the examples, for each value of which there is a figure as well."""
    withheld: str = ""
    """Why there is no figure; known before the run, or once all examples are read."""

    @property
    def key(self) -> str:
        """The key of its figure in a summary."""
        return f"{PREFIX}{self.label}"

    @property
    def part_key(self) -> str:
        """The key of the same mean over a part of the examples, which is not its figure."""
        return f"{PART}{self.label}"

    @property
    def shown_key(self) -> str:
        """The key of what can be shown: its figure, or else the mean over a part."""
        return self.part_key if self.withheld else self.key

    @property
    def title(self) -> str:
        """What can be shown, in words."""
        return f"{self.label} in part" if self.withheld else self.label

    def weights(self, rows: Mapping[str, int], labels: Iterable[str] = ()) -> dict[str, float]:
        """Return how much the mean of each part counts, given how many rows each has.

        With `labels` only those parts count.
        """
        chosen = list(labels) or list(self.parts)
        if self.kind == "micro":
            total = sum(rows[label] for label in chosen)
            return {label: rows[label] / total for label in chosen}
        if self.kind == "macro":
            return dict.fromkeys(chosen, 1 / len(chosen))
        together = [self.parts[label] for label in chosen]
        categories = len({*together})
        return {
            label: 1 / (categories * together.count(category))
            for label, category in zip(chosen, together, strict=True)
        }

    def describe(self) -> dict[str, Any]:
        """Give it as plain data, for the record of a run."""
        return asdict(self)


def suites_from(described: Iterable[Mapping[str, Any]]) -> tuple[Suite, ...]:
    """Read suites from the record of a run."""
    return tuple(Suite(**each) for each in described)


class Suites(FrameMetric):
    """Gives `suite:<label>`, the figure of a suite, and those of its categories and buckets.

    Rows that failed on the system's side count at worst. There is no figure
    where a part has no row that counts, or rows that could not be scored, of
    which `suite_unscored:<label>` is the number. Where a part lacks examples the
    same means are `suite_part:<label>`, and there is no figure.
    """

    name = "suites"
    description = "Published mean over the parts of each suite, by each part's own score."
    keys = (
        *estimate_keys("suite:<label>"),
        *estimate_keys("suite:<label>/<category>"),
        *estimate_keys("suite:<label>/<field>=<value>"),
        "suite_unscored:<label>",
        *estimate_keys("suite_part:<label>"),
        *estimate_keys("suite_part:<label>/<category>"),
        *estimate_keys("suite_part:<label>/<field>=<value>"),
    )

    def __init__(self, suites: Sequence[Mapping[str, Any]] = ()) -> None:
        self.suites = suites_from(suites)
        fields = dict.fromkeys(suite.bucket for suite in self.suites if suite.bucket)
        self._buckets = {name: _group(name) for name in fields}
        self.extras = tuple(self._buckets.values())

    def over(self, frame: "Frame") -> Values:
        values: Values = {}
        scored = frame.scored(None)
        for suite in self.suites:
            if suite.withheld:
                values[suite.key] = None
            values |= self._figures(suite, frame, scored)
        return values

    def _figures(self, suite: Suite, frame: "Frame", scored: "ScoredRows") -> Values:
        import numpy as np

        codes = [frame.datasets.get(label, -1) for label in suite.parts]
        inside: Flags = np.isin(frame.dataset, codes)
        unscored = int((scored.is_unscored & inside).sum())
        if unscored:
            return {suite.shown_key: None, f"{UNSCORED}{suite.label}": float(unscored)}
        values = _figure(suite, frame, scored).named(suite.shown_key)
        if suite.kind == "categories":
            for category in dict.fromkeys(suite.parts.values()):
                labels = [label for label, own in suite.parts.items() if own == category]
                figure = _figure(suite, frame, scored, labels)
                values |= figure.named(f"{suite.shown_key}/{category}")
        if suite.bucket:
            names, rows = frame.labels(self._buckets[suite.bucket])
            for name in sorted(filter(None, names), key=_in_order):
                part = scored.of(rows == names[name])
                figure = _figure(suite, frame, part, _present(suite, frame, part))
                values |= figure.named(f"{suite.shown_key}/{suite.bucket}={name}")
        return values | {f"{UNSCORED}{suite.label}": 0.0}


def _figure(
    suite: Suite, frame: "Frame", scored: "ScoredRows", labels: Sequence[str] = ()
) -> Estimate:
    """Combine the means of some parts; nothing where one of them has no row that counts."""
    means: dict[str, Estimate] = {}
    rows: dict[str, int] = {}
    for label in labels or suite.parts:
        part = scored.of(frame.dataset == frame.datasets.get(label, -1))
        values, where = part.with_failures()
        rows[label] = int(where.sum())
        if not rows[label]:
            return Estimate()
        means[label] = frame.mean(values, where, in_unit=part.in_unit)
    weights = suite.weights(rows, labels)
    return combined(
        [(weights[label], mean) for label, mean in means.items()], in_unit=scored.in_unit
    )


def _present(suite: Suite, frame: "Frame", part: "ScoredRows") -> list[str]:
    """Return the parts that have rows there, where the mean is that of all rows."""
    if suite.kind != "micro":
        return []
    present = {*frame.dataset[part.with_failures()[1]]}
    return [label for label in suite.parts if frame.datasets.get(label, -1) in present]


def _group(name: str) -> Extra:
    return Extra(lambda row: row.groups.get(name, ""), Labels)


def _in_order(name: str) -> tuple[float, str]:
    return (float(name) if name.isdecimal() else 0.0, name)
