"""Names and options of components in a run file, checked without starting any of them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cbench_client.messages.options import DeclaredOptions, UnsuitedOption
from cbench_server.cli.run_files.filed import options_of
from cbench_server.cli.run_files.lines import Path
from cbench_server.cli.run_files.reading import Document, Mistake, written
from cbench_server.contract import info_of
from cbench_server.datasets.mapping import read_mapping
from cbench_server.errors import InvalidInput, UnknownName
from cbench_server.registry import registry
from cbench_server.rpc.declared_options import builtin_options

if TYPE_CHECKING:
    from collections.abc import Callable

Option = tuple[str, Any, Path]
"""A name, a value, and where in the file it stands."""

# Their options are declared by a process that does not run yet.
_ELSEWHERE = ("launch", "exec", "http", "target", "attached")


def check_components(document: Document) -> tuple[list[Mistake], list[str]]:
    """Return the mistakes of a file, and what only its run will tell."""
    found = _Components(document)
    return found.mistakes, found.unchecked


class _Components:
    """What a run file says of components: what is wrong, and what only the run will tell."""

    def __init__(self, document: Document) -> None:
        self.mistakes: list[Mistake] = []
        self.unchecked: list[str] = []
        self._document = document
        self._takers: list[DeclaredOptions | None] = []
        """What each system takes, where that is known here."""
        daemon = document.get("daemon", {})
        self._others = next((key for key in ("server", "imports") if daemon.get(key)), "")
        self._check_names()
        self._check_systems()
        self._check_sweep()
        self._check_evaluators()
        for place, entry in _with_names(document.get("metrics", [])):
            self._check_entry("metric", registry.create_metric, ("metrics", place), entry)
        for place, entry in enumerate(document.get("datasets", [])):
            self._check_mapping(place, entry.get("map", {}))
        for place, entry in _with_names(document.get("datasets", [])):
            if "file" not in entry and "upload" not in entry:
                self._check_dataset(place, entry)

    @property
    def _kind(self) -> str:
        return "memory_system" if self._document.get("kind") == "memory" else "system"

    def _check_names(self) -> None:
        seen = set()
        for place, entry in enumerate(self._document.get("systems", [])):
            name = entry.get("name") or entry.get("builtin")
            if name and name in seen:
                self._tell(("systems", place), f'is named "{name}" as another; give it a `name`.')
            seen.add(name)

    def _check_systems(self) -> None:
        shared: dict[str, Any] = self._document.get("options", {})
        for place, entry in enumerate(self._document.get("systems", [])):
            declared = self._declared(place, entry)
            self._takers.append(declared)
            given = [*self._options_at(place, entry)]
            if declared is None:
                if given and (way := next((way for way in _ELSEWHERE if way in entry), "")):
                    self.unchecked.append(
                        f"options of systems[{place}]: {entry[way]} says which it takes when the "
                        "run begins."
                    )
                continue
            given += [
                (name, value, ("options", name))
                for name, value in shared.items()
                if declared.takes(name)
            ]
            who = f'system "{entry.get("builtin", "")}"' if "builtin" in entry else "a file"
            if self._check_options(declared, given, who) and "builtin" in entry:
                make = (
                    registry.create_system
                    if self._kind == "system"
                    else registry.create_memory_system
                )
                self._make(make, ("systems", place), entry["builtin"], given)
        for name in shared:
            if all(each is not None and not each.takes(name) for each in self._takers):
                self._tell(("options", name), "is an option of no system of this file.")

    def _declared(self, place: int, entry: Mapping[str, Any]) -> DeclaredOptions | None:
        if "predictions" in entry or "upload" in entry:
            return DeclaredOptions()
        if "builtin" not in entry:
            return None
        return self._named(self._kind, entry["builtin"], ("systems", place, "builtin"))

    def _options_at(self, place: int, entry: Mapping[str, Any]) -> Iterator[Option]:
        """Yield the options that are for one system alone."""
        for name, value in options_of(entry).items():
            yield name, value, _path(("systems", place), entry, name)
        names = _names(entry)
        for owner, values in self._document.get("system_options", {}).items():
            if owner in names:
                for name, value in values.items():
                    yield name, value, ("system_options", owner, name)

    def _check_sweep(self) -> None:
        swept = self._document.get("sweep", {})
        name, owner = swept.get("option"), swept.get("system", "")
        systems = self._document.get("systems", [])
        for place, entry in enumerate(systems):
            declared = self._takers[place]
            if not name or "builtin" not in entry or declared is None:
                continue
            if len(systems) > 1 and owner not in _names(entry):
                continue
            path: Path = ("sweep", "values" if declared.takes(name) else "option")
            who = f'system "{entry["builtin"]}"'
            for value in swept.get("values", ()):
                if not self._check_options(declared, [(name, value, path)], who):
                    break

    def _check_evaluators(self) -> None:
        for place, entry in _with_names(self._document.get("evaluators", [])):
            path: Path = ("evaluators", place)
            if way := next((way for way in ("target", "attached") if way in entry), ""):
                if options_of(entry):
                    self.unchecked.append(
                        f"options of evaluators[{place}]: {entry[way]} says which it takes when "
                        "the run begins."
                    )
                continue
            declared = self._named("evaluator", entry["name"], (*path, "name"))
            if declared is None:
                continue
            # The daemon's own: which of its keys is used.
            asks_model = info_of(registry.get("evaluator", entry["name"])).asks_model
            given = [
                (name, value, _path(path, entry, name))
                for name, value in options_of(entry).items()
                if not (asks_model and name == "credential")
            ]
            self._check_options(declared, given, f'evaluator "{entry["name"]}"')

    def _check_entry(
        self, kind: str, make: "Callable[..., Any]", path: Path, entry: Mapping[str, Any]
    ) -> None:
        declared = self._named(kind, entry["name"], (*path, "name"))
        given = [
            (name, value, _path(path, entry, name)) for name, value in options_of(entry).items()
        ]
        who = f'{kind} "{entry["name"]}"'
        if declared is not None and self._check_options(declared, given, who):
            self._make(make, path, entry["name"], given)

    def _check_mapping(self, place: int, mapping: Mapping[str, str]) -> None:
        for field, text in mapping.items():
            try:
                read_mapping({field: text})
            except InvalidInput as error:
                self._tell(("datasets", place, "map", field), f"is wrong: {error}")

    def _check_dataset(self, place: int, entry: Mapping[str, Any]) -> None:
        name = entry.get("name", "")
        if name.startswith("hf:"):
            self.unchecked.append(f"datasets[{place}]: {name} is looked up when the run begins.")
            return
        self._find("dataset", name, ("datasets", place, "name"))

    def _named(self, kind: str, name: str, path: Path) -> DeclaredOptions | None:
        """Return what a registered component takes; None, and a word on it, if there is none."""
        return builtin_options(registry, kind, name) if self._find(kind, name, path) else None

    def _find(self, kind: str, name: str, path: Path) -> bool:
        try:
            registry.get(kind, name)
        except UnknownName as error:
            if self._others:
                self.unchecked.append(
                    f'{written(path)}: "{name}" is not known here; whether daemon.{self._others} '
                    "has it, the run will tell."
                )
            else:
                self._tell(path, f"is wrong: {error}")
            return False
        return True

    def _check_options(self, declared: DeclaredOptions, given: list[Option], who: str) -> bool:
        known = {each.name: each for each in declared.options}
        before = len(self.mistakes)
        for name, value, path in given:
            try:
                if name in known:
                    known[name].taken(value)
                elif not declared.accepts_others:
                    self._tell(path, f"is wrong: {who} has no such option{declared.hint(name)}")
            except UnsuitedOption as error:
                self._tell(path, f"is wrong: {who}: {error}.")
        return len(self.mistakes) == before

    def _make(self, make: "Callable[..., Any]", path: Path, name: str, given: list[Option]) -> None:
        """Make a component of ours, which knows more of its options than their types."""
        try:
            make(name, {option: value for option, value, _ in given})
        except InvalidInput as error:
            option = error.field.removeprefix("options").strip('."[]')
            where = next((at for key, _, at in given if key == option), path)
            self._tell(where, f"is wrong: {error}")

    def _tell(self, path: Path, text: str) -> None:
        if (path, text) not in self.mistakes:
            self.mistakes.append((path, text))


def _with_names(entries: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what is named, with its place: a file with other mistakes has entries without."""
    return ((place, entry) for place, entry in enumerate(entries) if "name" in entry)


def _path(home: Path, entry: Mapping[str, Any], name: str) -> Path:
    return (*home, "options", name) if name in entry.get("options", {}) else (*home, "unset")


def _names(entry: Mapping[str, Any]) -> set[str]:
    return {entry.get("name", ""), entry.get("builtin", "")} - {""}
