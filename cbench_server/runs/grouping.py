"""Grouping of a run's rows: which fields they keep, and the figures that are asked for by them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from cbench_server.datasets.protocol import DatasetProtocol
from cbench_server.errors import InvalidSpec, NotFound
from cbench_server.limits import MAX_GROUPS
from cbench_server.metrics.geometric_mean import KEY as GEOMETRIC
from cbench_server.metrics.groups import OWN_FIELDS, is_group, unknown_field
from cbench_server.metrics.per_group import COUNT
from cbench_server.registry import Registry
from cbench_server.results import Summary
from cbench_server.runs.suites import suites_in
from cbench_server.spec import DatasetRef, MetricRef, RunNote, RunSpec

TOO_MANY = "TOO_MANY_GROUPS"
# Some sources give a field to a part of their examples only.
_LOOKED_AT = 50


def kept_groups(protocol: DatasetProtocol, asked: Sequence[str]) -> tuple[str, ...]:
    """Name the fields that rows keep: those the dataset is published by, and those asked for."""
    bucket = protocol.aggregate.bucket
    wanted = (*protocol.groups, *((bucket,) if bucket else ()), *asked)
    return tuple(name for name in dict.fromkeys(wanted) if name not in OWN_FIELDS)


def asked_figures(spec: RunSpec, registry: Registry) -> list[MetricRef]:
    """Return the metrics of a run's own figures, of suites it has all parts of, and of groups."""
    found = []
    if suites := suites_in(spec.datasets, registry):
        found.append(MetricRef("suites", {"suites": [suite.describe() for suite in suites]}))
    scores = geometric_figure(spec, registry)
    if scores and all(ref.name != "geometric-mean" for ref in spec.metrics):
        found.append(MetricRef("geometric-mean", {"scores": scores}))
    if spec.group_by:
        found.append(MetricRef("per-group", {"fields": list(spec.group_by)}))
    return found


def ranked_by(spec: RunSpec, registry: Registry) -> dict[str, str]:
    """Return the quality that systems are ranked by, where it is the figure of a suite."""
    labels = {ref.label for ref in spec.datasets}
    for suite in suites_in(spec.datasets, registry):
        if {*suite.parts} == labels:
            return {"quality_field": suite.key}
    return {"quality_field": GEOMETRIC} if geometric_figure(spec, registry) else {}


def geometric_scores(spec: RunSpec, registry: Registry) -> dict[str, list[str]]:
    """Return, by dataset, the scores whose means give its figure as a geometric mean.

    There are none where the run counts another score.
    """
    found = {}
    for ref in spec.datasets:
        if ref.upload or spec.score_field:
            continue
        try:
            aggregate = registry.dataset(ref.name).protocol_of(ref.config).aggregate
        except NotFound:
            continue  # Examples of the user's own making, under a name of theirs.
        if aggregate.rows == "geometric-mean":
            found[ref.label] = list(aggregate.scores)
    return found


def geometric_figure(spec: RunSpec, registry: Registry) -> list[str]:
    """Return the scores whose geometric mean is the figure of a run of one dataset."""
    found = geometric_scores(spec, registry)
    return next(iter(found.values()), []) if len(spec.datasets) == 1 else []


def described_figure(spec: RunSpec, registry: Registry) -> dict[str, Any]:
    """Record which key of the summary is a run's figure, where it is not the mean of a score."""
    scores = geometric_figure(spec, registry)
    return {"figure": {"key": GEOMETRIC, "scores": scores}} if scores else {}


class Groupable(Protocol):
    """A dataset of which examples can be read."""

    @property
    def protocol(self) -> DatasetProtocol:
        """What its config measures."""
        ...

    @property
    def ref(self) -> DatasetRef:
        """What it was asked for by."""
        ...

    def originals(self) -> Iterable[Mapping[str, Any]]:
        """Iterate its examples."""
        ...


def check_fields(asked: Sequence[str], datasets: Sequence[Groupable]) -> None:
    """Refuse a field to group by that none of the datasets has, and name those there are.

    Examples are read only where no dataset is published by the field.
    """
    published = dict.fromkeys(name for each in datasets for name in each.protocol.groups)
    missing = [name for name in asked if name not in published and name not in OWN_FIELDS]
    known = dict(published)
    for dataset in datasets:
        if not missing:
            return
        for example in islice(dataset.originals(), _LOOKED_AT):
            known |= dict.fromkeys(name for name, value in example.items() if is_group(name, value))
            missing = [name for name in missing if name not in example]
            if not missing:
                return
    if missing:
        place = list(asked).index(missing[0])
        text = unknown_field(missing[0], known)
        if any(each.ref.mapping for each in datasets):
            text += f". A mapping keeps the fields it names only: add {missing[0]}=PATH to it."
        raise InvalidSpec(text, field=f"spec.group_by[{place}]")


def group_notes(group_by: Sequence[str], summary: Summary) -> list[RunNote]:
    """Say which fields have too many values to be shown."""
    notes = []
    for field in group_by:
        counts = [int(values.get(f"{COUNT}{field}") or 0) for values in summary.values()]
        if counts and max(counts) > MAX_GROUPS:
            text = (
                f"{field} has {max(counts):,} different values, more than the {MAX_GROUPS} groups "
                "that are shown. Group by a field with fewer."
            )
            notes.append(RunNote(TOO_MANY, text, dataset=field))
    return notes
