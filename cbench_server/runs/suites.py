"""Suites of a run: a name such as `longbench:all` becomes its parts, and they one figure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.datasets.protocol import DatasetProtocol
from cbench_server.datasets.readers.files import is_file_name
from cbench_server.datasets.record import DatasetRecord
from cbench_server.datasets.suites import parts_of, suite_configs
from cbench_server.errors import NotFound, blaming
from cbench_server.metrics.protocol import Values
from cbench_server.metrics.stats.estimate import base_key
from cbench_server.metrics.suites import PART, PREFIX, UNSCORED, Suite, suites_from
from cbench_server.registry import Registry, split_name
from cbench_server.results import Summary
from cbench_server.runs.shortfalls import short
from cbench_server.spec import DatasetRef, RunNote, RunSpec, RunState

Part = tuple[DatasetRef, DatasetProtocol]
INCOMPLETE = "SUITE_INCOMPLETE"
"""The code of a note on a suite that has no figure."""


def with_registered_names(spec: RunSpec, registry: Registry) -> RunSpec:
    """Give datasets the names they are registered under, so that rows of all runs agree on them.

    A suite is replaced by its parts.
    """
    refs: list[DatasetRef] = []
    for place, ref in enumerate(spec.datasets):
        with blaming(f"spec.datasets[{place}]"):
            refs += _registered(ref, registry)
    return replace(spec, datasets=tuple(refs))


def _registered(ref: DatasetRef, registry: Registry) -> list[DatasetRef]:
    if ref.upload:
        return [ref]
    with blaming("name"):
        name = registry.name_of("dataset", ref.name)
        record = registry.dataset(name)
    if not ref.config:
        return [replace(ref, name=name)]
    with blaming("config"):
        configs = suite_configs(record, ref.config) or (ref.config,)
        found = [config and record.config_of(config) for config in configs]
    return [replace(ref, name=name, config=config) for config in found]


def named_parts(dataset: Any, registry: Registry) -> Any:
    """Replace the suites among the datasets that were named by their parts."""
    if isinstance(dataset, str):
        names = _names(dataset, registry)
        return names if len(names) > 1 else names[0]
    if isinstance(dataset, list | tuple) and any(isinstance(each, str) for each in dataset):
        return [
            part
            for each in dataset
            for part in (_names(each, registry) if isinstance(each, str) else [each])
        ]
    return dataset


def _names(name: str, registry: Registry) -> list[str]:
    base, config = split_name(name)
    if not config or is_file_name(name):
        return [name]
    record = registry.get("dataset", base)
    if not isinstance(record, DatasetRecord):
        return [name]
    configs = suite_configs(record, config) or (config,)
    return [f"{base}:{config}" if config else base for config in configs]


def suites_in(refs: Iterable[DatasetRef], registry: Registry) -> list[Suite]:
    """Find the suites of which a run has all parts."""
    found: dict[tuple[str, str, str], dict[str, Part]] = {}
    for ref in refs:
        if ref.upload or not ref.config:
            continue
        try:
            record = registry.dataset(ref.name)
            task, _, settings = record.config_of(ref.config).partition(",")
            protocol = record.protocol_of(ref.config)
        except NotFound:
            continue  # Examples of the user's own making, under a name of theirs.
        aggregate = protocol.aggregate
        for suite in aggregate.suites if aggregate.configs else ():
            parts = found.setdefault((ref.name, suite, settings), {})
            parts[task] = (ref, protocol)
    return [
        _suite(f"{name}:{suite}{',' if settings else ''}{settings}", whole)
        for (name, suite, settings), parts in found.items()
        if (whole := _whole(parts, suite, parts_of(registry.dataset(name), suite)))
    ]


def _whole(parts: Mapping[str, Part], suite: str, wanted: Sequence[str]) -> list[Part]:
    """Return the parts that are the whole suite: the config that has all rows, or all others."""
    if suite in parts:
        return [parts[suite]]
    return [*parts.values()] if {*parts} == {*wanted} else []


def _suite(label: str, parts: Sequence[Part]) -> Suite:
    (_, first), *_ = parts
    return Suite(
        label,
        first.aggregate.configs or "macro",
        {ref.label: protocol.aggregate.category for ref, protocol in parts},
        first.aggregate.bucket,
        _limited([ref for ref, _ in parts]) or _of_another_split(parts),
    )


def _limited(refs: Sequence[DatasetRef]) -> str:
    """Say what leaves out examples, without which a suite's figure is not the published one."""
    counts = {ref.max_examples for ref in refs} - {None}
    if counts:
        return f"at most {min(filter(None, counts)):,} examples of each part were asked for"
    fields = sorted({f"{name}={value}" for ref in refs for name, value in ref.where.items()})
    return f"only examples with {', '.join(fields)} were asked for" if fields else ""


def _of_another_split(parts: Sequence[Part]) -> str:
    others = {ref.split for ref, protocol in parts if ref.split not in ("", protocol.split)}
    return f"the split {', '.join(sorted(others))} was asked for" if others else ""


def counted_suites(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run records of its suites, now that the examples of its datasets are counted.

    A suite of which a part lacks examples has no figure.
    """
    lacking = short(config.get("datasets", ()))
    suites = suites_from(config.get("suites", ()))
    counted = [
        replace(suite, withheld=suite.withheld or _lacking([*suite.parts], lacking)).describe()
        for suite in suites
    ]
    return {"suites": counted} if counted else {}


def _lacking(parts: Sequence[str], lacking: Mapping[str, str]) -> str:
    found = [lacking[part] for part in parts if part in lacking]
    if not found:
        return ""
    more = f", and {len(found) - 1} more parts lack some" if len(found) > 1 else ""
    return f"{found[0]} were there{more}"


def complete_suites(summary: Summary, suites: Iterable[Suite], state: RunState) -> Summary:
    """Take away the figures of suites where rows or examples are missing.

    What was computed of examples that are a part of the published ones is kept by another name.
    """
    if state is not RunState.SUCCEEDED:
        return {
            system: {
                key: None if key.startswith(PREFIX) else value
                for key, value in values.items()
                if not key.startswith(PART)
            }
            for system, values in summary.items()
        }
    for suite in suites:
        if suite.withheld:
            summary = {system: _in_part(values, suite) for system, values in summary.items()}
    return summary


def _in_part(values: Values, suite: Suite) -> Values:
    found: Values = {}
    for key, value in values.items():
        if key.startswith(f"{suite.key}/") or base_key(key) == suite.key:
            if key == suite.key:
                found[key] = None
            found.setdefault(suite.part_key + key.removeprefix(suite.key), value)
        else:
            found[key] = value
    return found


def suite_notes(suites: Iterable[Suite], summary: Summary, state: RunState) -> list[RunNote]:
    """Say why a suite has no figure, for all systems or for one."""
    notes = []
    for suite in suites:
        why = suite.withheld
        if state is not RunState.SUCCEEDED:
            ended = "was cancelled" if state is RunState.CANCELLED else "failed"
            why = f"the run {ended} before all rows were done"
        if why:
            notes.append(_note(suite, why))
            continue
        for system, values in summary.items():
            if unscored := int(values.get(f"{UNSCORED}{suite.label}") or 0):
                why = f"{unscored:,} rows of {system} could not be scored; rescore the run"
                notes.append(_note(suite, why, system))
            elif suite.key in values and values[suite.key] is None:
                empty = [label for label in suite.parts if values.get(f"dataset:{label}") is None]
                more = f" and {len(empty) - 3} more" if len(empty) > 3 else ""
                parts = f"{', '.join(empty[:3])}{more}"
                why = f"no row of {system} on {parts} has the score that counts"
                notes.append(_note(suite, why, system))
    return notes


def _note(suite: Suite, why: str, system: str = "") -> RunNote:
    text = f"{suite.label} has no figure: {why}. It is given for complete parts only."
    return RunNote(INCOMPLETE, text, system, suite.label)
