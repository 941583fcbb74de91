"""Protocols: what a config of a dataset measures, and how far its authors measure the same.

A protocol is compared with the official one on four axes. Each is `same`,
`differs`, or `external` where only an outside harness or judge can do it. What
a run changes (another split, a part of the examples, another score) is added
when it is described, so a run is never called official for what it did not do.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cbench_server.spec import EvaluatorRef

Status = Literal["same", "differs", "external"]
AXES = ("data", "prompt", "metric", "aggregation")


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a protocol beside the official one, with a sentence where they are not equal."""

    status: Status = "same"
    why: str = ""

    def __post_init__(self) -> None:
        if (self.status == "same") == bool(self.why):
            raise ValueError(f'an axis that is "{self.status}" has the wrong sentence: {self.why}')

    def with_difference(self, *sentences: str) -> "Axis":
        """Add what a run does otherwise."""
        if not any(sentences):
            return self
        status: Status = "differs" if self.status == "same" else self.status
        return Axis(status, " ".join(filter(None, (self.why, *sentences))))


SAME = Axis()


def differs(why: str) -> Axis:
    """Say in one sentence what is not as the authors have it."""
    return Axis("differs", why)


def external(why: str) -> Axis:
    """Say in one sentence what is needed from outside."""
    return Axis("external", why)


OWN_WORDS = differs("Models are told the task in words of our own.")


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How the rows of a config become its figure, and the configs of a dataset that of a suite."""

    rows: Literal["mean", "geometric-mean", "effective-length"] = "mean"
    scores: tuple[str, ...] = ()
    """The scores whose means are combined; empty means the primary score alone."""
    configs: Literal["", "macro", "micro", "categories"] = ""
    """`macro` is the mean of the configs' figures, `micro` that of all rows, `categories` the mean
    of each category's configs, and of those; empty where nothing is published."""
    category: str = ""
    """The category that a config counts in."""
    suites: tuple[str, ...] = ("all",)
    """The suites that a config is a part of, where there are any."""
    bucket: str = ""
    """A field of the examples, for each value of which the suite is published as well."""

    def __str__(self) -> str:
        if self.rows == "geometric-mean":
            text = f"Geometric mean of the means of {', '.join(self.scores)}"
        elif self.rows == "effective-length":
            text = "Mean of the rows, and of all lengths the longest that keeps 85% of short ones"
        else:
            text = "Mean of the rows"
        suite = {
            "": "",
            "macro": "; a suite is the mean of its configs",
            "micro": "; a suite is the mean of all its rows",
            "categories": f"; a suite is the mean of its categories, this one in {self.category}",
        }
        by = f", and for each {self.bucket}" if self.configs and self.bucket else ""
        return f"{text}{suite[self.configs]}{by}."


def uses(*names: str) -> tuple[EvaluatorRef, ...]:
    """Refer to evaluators without settings."""
    return tuple(EvaluatorRef(name) for name in names)


def use(name: str, **options: Any) -> tuple[EvaluatorRef, ...]:
    """Refer to the evaluator of every dataset, and one with settings after it."""
    return (*uses("answer-quality"), EvaluatorRef(name, options=options))


EVIDENCE = uses("evidence-recall")
"""The evaluator of datasets that know where an answer is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetProtocol:
    """What one config measures, and how."""

    follows: str = ""
    """Whose rules it follows: a repository and file, or a paper. Empty means its own only, so there
    is nothing to compare it with."""
    source: str = ""
    revision: str = ""
    split: str = ""
    published: tuple[str, ...] = ()
    """Files of a mirror that hold the very data of the authors, where the source is a copy."""
    shown: tuple[str, ...] = ("context", "question")
    """The fields a system gets, besides `id`."""
    withheld: tuple[str, ...] = ("answer",)
    """The fields it does not get."""
    extraction: str = "The whole response is the answer."
    evaluators: tuple[EvaluatorRef, ...] = uses("answer-quality")
    primary_score: str = "f1"
    """Empty where no honest figure can be computed here."""
    counts_abstentions: bool = False
    """Whether the primary score, and not `abstention`, counts on questions without an answer."""
    worst: float | None = 0.0
    """What a row counts on which the system failed."""
    groups: tuple[str, ...] = ()
    """Fields by which results are published."""
    aggregate: Aggregation = field(default_factory=Aggregation)
    data: Axis = SAME
    prompt: Axis = OWN_WORDS
    metric: Axis = SAME
    aggregation: Axis = SAME

    @property
    def axes(self) -> dict[str, Axis]:
        """The four axes by name."""
        axes = (self.data, self.prompt, self.metric, self.aggregation)
        return dict(zip(AXES, axes, strict=True))

    @property
    def figure(self) -> str:
        """What a run shows first, as its summary names it: the primary score, or a mean."""
        is_mean = self.aggregate.rows == "geometric-mean"
        return "geometric_mean" if is_mean else self.primary_score

    @property
    def evaluator_names(self) -> tuple[str, ...]:
        """The evaluators, without their settings."""
        return tuple(ref.name for ref in self.evaluators)

    def in_a_run(
        self,
        *,
        split: str,
        part: str,
        primary_score: str,
        settings: str = "",
        aggregation: str = "",
        prompt: Axis | None = None,
        files: Collection[str] = (),
    ) -> "DatasetProtocol":
        """Return it as a run followed it.

        `split` is the one that was read, `part` says what else of the data was not as usual,
        `primary_score` is the score that counted, `settings` says by which other evaluator or
        settings, `aggregation` what the figure lacks, and `files` are those of a mirror.
        """
        data = SAME if any(name in self.published for name in files) else self.data
        data = data.with_difference(
            f"The split {split} was read, not {self.split}." if split != self.split else "", part
        )
        metric = self.metric.with_difference(
            f"The run counts {primary_score or 'no score'} instead of {self.primary_score}."
            if primary_score != self.primary_score
            else "",
            settings,
        )
        return replace(
            self,
            data=data,
            metric=metric,
            prompt=prompt or self.prompt,
            split=split,
            aggregation=self.aggregation.with_difference(aggregation),
        )

    def describe(self) -> dict[str, Any]:
        """Give it as plain data, for the record of a run and for a card."""
        return {
            "follows": self.follows,
            "source": self.source,
            "revision": self.revision,
            "split": self.split,
            "shown": list(self.shown),
            "withheld": list(self.withheld),
            "extraction": self.extraction,
            "evaluators": [
                {"name": ref.name, "options": dict(ref.options)} for ref in self.evaluators
            ],
            "primary_score": self.primary_score,
            "worst": self.worst,
            "groups": list(self.groups),
            "aggregate": str(self.aggregate),
            "axes": {
                name: {"status": axis.status, "why": axis.why} for name, axis in self.axes.items()
            },
        }
