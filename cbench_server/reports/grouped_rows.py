"""Grouped rows: those of a stored run, by fields that they kept or that its examples have."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from cbench_server.errors import InvalidInput
from cbench_server.metrics.groups import (
    OWN_FIELDS,
    group_of,
    groups_of,
    is_group,
    unknown_field,
)
from cbench_server.reports.groups import summarized_by
from cbench_server.reports.report import FullRow
from cbench_server.results import EvalRow
from cbench_server.spec import Run

ReadRows = Callable[[str], Iterable[EvalRow]]
"""Reads the rows of a system, or of all where none is named."""


class GroupedRows:
    """Rows with some fields of their examples as groups.

    Rows keep the fields that their dataset is published by, and those that the
    run was asked for. For others the examples are read, once for all systems.
    """

    def __init__(
        self,
        run: Run,
        fields: Sequence[str],
        read: ReadRows,
        read_full: Callable[[str], Iterable[FullRow]],
    ) -> None:
        """Raises InvalidInput, with the fields there are, for one that no example has."""
        self._run = run
        self._fields = tuple(dict.fromkeys(fields))
        self._read = read
        self._found: dict[int, dict[str, str]] = {}
        missing = [field for field in self._fields if not _is_kept(run, field)]
        if missing and run.systems:
            self._look_up(missing, read_full(run.systems[0]))

    def _look_up(self, missing: Sequence[str], rows: Iterable[FullRow]) -> None:
        known: dict[str, None] = {}
        seen: set[str] = set()
        for row, original in rows:
            example = original or {}
            known |= dict.fromkeys(name for name, value in example.items() if is_group(name, value))
            known |= dict.fromkeys((*row.groups, *row.metadata))
            if found := groups_of(example, missing):
                self._found[row.ordinal] = found
            seen.update(field for field in missing if field in found or group_of(row, field))
        for field in missing:
            if field not in seen:
                raise InvalidInput(unknown_field(field, known))

    def rows(self, system: str = "") -> Iterator[EvalRow]:
        """Read the rows of a system, or of all, with the fields among their groups."""
        for row in self._read(system):
            if found := self._found.get(row.ordinal):
                row.groups = {**row.groups, **found}
            yield row

    def summarized(self) -> Run:
        """Return the run with the figures of its groups in its summary."""
        run = self._run
        found = summarized_by(self._fields, run, self.rows(), run.spec.score_field or None)
        return replace(
            run,
            summary={
                system: {**run.summary.get(system, {}), **found.get(system, {})}
                for system in run.systems
            },
        )


def _is_kept(run: Run, field: str) -> bool:
    datasets = run.config.get("datasets", [])
    kept = [field in each.get("groups", ()) for each in datasets]
    return field in OWN_FIELDS or (bool(kept) and all(kept))
