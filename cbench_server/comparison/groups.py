"""Groups of examples in a comparison: a difference for each value of a field."""

from collections.abc import Iterable, Iterator, Sequence

from cbench_server.comparison.pairs import Key, Matched
from cbench_server.limits import MAX_GROUPS
from cbench_server.metrics.groups import group_names, group_of
from cbench_server.results import EvalRow


class Groups:
    """Takes note of the groups that examples are in, while their rows are read."""

    def __init__(self, fields: Sequence[str]) -> None:
        self.fields = tuple(fields)
        self._values: dict[str, dict[Key, str]] = {field: {} for field in fields}

    def noting(self, rows: Iterable[EvalRow]) -> Iterable[EvalRow]:
        """Pass rows on."""
        return self._noting(rows) if self.fields else rows

    def _noting(self, rows: Iterable[EvalRow]) -> Iterator[EvalRow]:
        for row in rows:
            for field, values in self._values.items():
                # A run may keep a field that the other does not.
                if value := group_of(row, field):
                    values[row.dataset, row.example_id] = value
            yield row

    def of(self, matched: Matched) -> Iterator[tuple[str, str, Matched]]:
        """Yield each field and group with the examples in it; none of a field with too many."""
        for field, values in self._values.items():
            names = group_names({*values.values(), ""})
            places: dict[str, list[int]] = {name: [] for name in names.values()}
            for place, key in enumerate(matched.keys):
                places[names[values.get(key, "")]].append(place)
            if len(places) <= MAX_GROUPS:
                for name, chosen in places.items():
                    if chosen:
                        yield field, name, matched.part(chosen)

    def notes(self) -> Iterator[str]:
        """Say which fields are no use."""
        for field, values in self._values.items():
            names = {*group_names({*values.values()}).values()}
            if not names:
                yield f"No example has the field {field}."
            elif len(names) > MAX_GROUPS:
                yield (
                    f"{field} has {len(names):,} different values, more than the {MAX_GROUPS} "
                    "groups that are compared."
                )
