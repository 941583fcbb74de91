"""The one place where names are resolved: name -> dataset, evaluator, metric, system and so on.

Built-ins and what installed packages offer through entry points are looked up
when a kind is first asked for, so importing this module costs nothing.
"""

import difflib
import inspect
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cbench_server.contract import aliases_of
from cbench_server.errors import InvalidInput, UnknownName, contained, entry_of
from cbench_server.types import Evaluator, Example, MemorySystem, Metric, System

if TYPE_CHECKING:
    from cbench_server.datasets import DatasetRecord
    from cbench_server.reports.report import Reporter

_log = logging.getLogger(__name__)

KINDS = ("dataset", "evaluator", "metric", "system", "memory_system", "reporter")


class Registry:
    """Components by kind and name.

    `preload(kind)` gives what is there from the start; registering replaces.
    Where a name is looked up, `_` is accepted for `-`.
    """

    def __init__(self, preload: Callable[[str], Mapping[str, Any]] = lambda kind: {}) -> None:
        self._preload = preload
        self._preloaded: dict[str, Mapping[str, Any]] = {}
        self._registered: dict[str, dict[str, Any]] = {}
        self.data_dir = ""
        """Where datasets look before they ask the hub; empty means CBENCH_DATA_DIR."""

    def register(self, kind: str, name: str, component: Any) -> None:
        """Make a component known by a name, in place of the one that had it."""
        self._registered.setdefault(kind, {})[name] = component

    def get(self, kind: str, name: str) -> Any:
        """Return the component of that name, or raise UnknownName."""
        return self._component(kind, self.name_of(kind, name))

    def name_of(self, kind: str, name: str) -> str:
        """Return the name that a component asked for by another one is registered under."""
        if self._is_known(kind, name) or _is_on_hub(kind, name):
            return name
        wanted, names = _canonical(name), self.list(kind)
        for known in names:
            names_of_it = (known, *aliases_of(self._component(kind, known)))
            if wanted in map(_canonical, names_of_it):
                return known
        raise UnknownName(kind.replace("_", " "), name, names)

    def list(self, kind: str) -> list[str]:
        """Return the names of a kind: built-ins, installed ones, then registered ones."""
        return [*dict.fromkeys((*self._shipped(kind), *self._registered.get(kind, {})))]

    def dataset(self, name: str) -> "DatasetRecord":
        """Return the record of a dataset; a plain loader gets one."""
        from cbench_server.datasets import DatasetRecord

        loader = self.get("dataset", name)
        if isinstance(loader, DatasetRecord):
            return loader
        return DatasetRecord(
            name=name,
            load=lambda config, **options: iter(loader(**options)),
            description=(inspect.getdoc(loader) or "").partition("\n")[0],
        )

    def create_evaluator(self, name: str, options: Mapping[str, Any]) -> Evaluator:
        """Make an evaluator; options it does not take raise InvalidInput."""
        return cast(Evaluator, self._create("evaluator", name, options))

    def create_metric(self, name: str, options: Mapping[str, Any]) -> Metric:
        """Make a metric, with its options checked."""
        return cast(Metric, self._create("metric", name, options))

    def create_system(self, name: str, options: Mapping[str, Any]) -> System:
        """Make a built-in or registered system, with its options checked."""
        return cast(System, self._create("system", name, options))

    def create_memory_system(
        self, name: str, options: Mapping[str, Any]
    ) -> MemorySystem | Callable[[], MemorySystem]:
        """Return a function that makes a memory system for each conversation.

        An object that is registered in place of a class is returned as it is.
        """
        made = cast(MemorySystem, self._create("memory_system", name, options))
        factory = self.get("memory_system", name)
        return partial(factory, **options) if is_factory(factory) else made

    def _create(self, kind: str, name: str, options: Mapping[str, Any]) -> Any:
        factory = self.get(kind, name)
        kind = kind.replace("_", " ")
        # An object in place of a class or function is used as it is.
        if not is_factory(factory):
            _check_options(kind, name, options, {}, takes_any=False)
            return factory
        parameters = _keywords(factory)
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        _check_options(kind, name, options, parameters, takes_any=takes_any)
        try:
            with contained(f'{kind} "{name}"'):
                return factory(**options)
        except (InvalidInput, UnknownName) as error:
            # What refuses its options names the one that is wrong before any other.
            named = [word for word in re.findall(r"\w+", str(error)) if word in options]
            error.field = error.field or (entry_of("options", named[0]) if named else "options")
            raise
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f'{kind} "{name}" refuses its options: {error}', field="options"
            ) from error

    def _is_known(self, kind: str, name: str) -> bool:
        return name in self._registered.get(kind, {}) or name in self._shipped(kind)

    def _component(self, kind: str, name: str) -> Any:
        registered = self._registered.get(kind, {})
        if _is_on_hub(kind, name) and name not in registered:
            from cbench_server.datasets.hub.any import hub_record

            return hub_record(name)
        return registered[name] if name in registered else self._shipped(kind)[name]

    def _shipped(self, kind: str) -> Mapping[str, Any]:
        if kind not in self._preloaded:
            self._preloaded[kind] = self._preload(kind)
        return self._preloaded[kind]


def _is_on_hub(kind: str, name: str) -> bool:
    """Whether a name means any dataset of the hub: `hf:org/name`."""
    return kind == "dataset" and name.startswith("hf:")


def _canonical(name: str) -> str:
    return name.replace("_", "-")


def is_factory(component: Any) -> bool:
    """Whether a component is made, of options, before it is used."""
    return inspect.isclass(component) or (
        callable(component)
        and not isinstance(component, Evaluator | Metric | System | MemorySystem)
    )


def _keywords(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(factory).parameters
    return {name: p for name, p in parameters.items() if p.kind not in positional}


def _check_options(
    kind: str,
    name: str,
    options: Mapping[str, Any],
    parameters: Mapping[str, inspect.Parameter],
    *,
    takes_any: bool,
) -> None:
    named = [key for key, p in parameters.items() if p.kind is not p.VAR_KEYWORD]
    accepts = f"it accepts {', '.join(named)}" if named else "it accepts none"
    for option in options:
        if option not in named and not takes_any:
            near = difflib.get_close_matches(option, named, n=1, cutoff=0.5)
            hint = f'did you mean "{near[0]}"?' if near else accepts
            raise InvalidInput(
                f'{kind} "{name}" has no option "{option}"; {hint}',
                field=entry_of("options", option),
            )
    for key in named:
        if key not in options and parameters[key].default is inspect.Parameter.empty:
            raise InvalidInput(
                f'{kind} "{name}" needs the option "{key}"; {accepts}',
                field=entry_of("options", key),
            )


@cache
def _entry_points(path: tuple[str, ...]) -> Any:
    """Read what every package on the path offers, once for all kinds.

    Python 3.11 and 3.12 return different types, which both have `select`.
    """
    from importlib.metadata import entry_points

    return entry_points()


def _installed(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry_point in _entry_points(tuple(sys.path)).select(group=f"cbench_server.{kind}s"):
        try:
            found[entry_point.name] = entry_point.load()
        except Exception:
            # Another package's mistake must not keep this one from starting.
            _log.warning(
                '%s "%s" (entry point %s) cannot be loaded and is left out',
                kind,
                entry_point.name,
                entry_point.value,
                exc_info=True,
            )
    return found


def _builtin(kind: str) -> Mapping[str, Any]:
    if kind == "dataset":
        from cbench_server.datasets.families import Datasets

        return Datasets()
    if kind == "evaluator":
        from cbench_server.evaluators import EVALUATORS

        return EVALUATORS
    if kind == "metric":
        from cbench_server.metrics import METRICS

        return METRICS
    if kind == "system":
        from cbench_server.systems import BUILTINS

        return BUILTINS
    if kind == "memory_system":
        from cbench_server.systems import MEMORY_BUILTINS

        return MEMORY_BUILTINS
    if kind == "reporter":
        from cbench_server.reports.formats import REPORTERS

        return REPORTERS
    return {}


def shipped_and_installed(kind: str) -> Mapping[str, Any]:
    """Return the built-ins of a kind and what installed packages add to them."""
    if kind not in KINDS:
        return {}
    builtin = _builtin(kind)
    installed = _installed(kind)
    for name in installed:
        if name in builtin:
            _log.warning(
                'an installed package offers %s "%s", but the built-in one is used', kind, name
            )
    return _Shipped(builtin, installed)


class _Shipped(Mapping[str, Any]):
    """Built-ins, which are imported when they are used, and then what was installed."""

    def __init__(self, builtin: Mapping[str, Any], installed: Mapping[str, Any]) -> None:
        self._builtin = builtin
        self._installed = installed

    def __getitem__(self, name: str) -> Any:
        return self._builtin[name] if name in self._builtin else self._installed[name]

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._installed

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._builtin, *self._installed)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


registry = Registry(shipped_and_installed)


def register_dataset(name: str, loader: "Callable[..., Iterable[Example]] | DatasetRecord") -> None:
    """Register a function that returns examples, or a DatasetRecord."""
    registry.register("dataset", name, loader)


def split_name(name: str) -> tuple[str, str]:
    """Split `NAME:CONFIG`, and `hf:ORG/NAME:CONFIG`, into a name and a config."""
    prefix = "hf:" if name.startswith("hf:") else ""
    base, _, config = name.removeprefix(prefix).partition(":")
    return f"{prefix}{base}", config


def load_dataset(name: str | PathLike[str], **options: Any) -> Iterable[Example]:
    """Load examples by name, or from a file: .jsonl, .json, .csv, .tsv, .parquet, or gzipped.

    `n` is how many examples to give at most. A dataset takes `config` (or a
    name such as `mmlu:anatomy`), and those of the hub `split`, `revision`,
    `data_dir` and `skip_bad_lines`; a file takes `skip_bad_lines`, and `tag`,
    by which its rows are to be known instead of its name. Both take a `mapping` from fields to
    paths, such as `{"answer": "gold.text[0]"}`, and conversations `as_transcript`, which gives
    each question with the whole conversation as context. They can be iterated more than once. A
    registered function gets the options as they are.
    """
    from cbench_server.datasets.loaded import loaded_file, loaded_record
    from cbench_server.datasets.readers.files import is_file_name
    from cbench_server.datasets.record import DatasetRecord

    if not isinstance(name, str) or is_file_name(name):
        return loaded_file(Path(name), **options)
    base, config = split_name(name)
    loader = registry.get("dataset", base)
    if config:
        options = {"config": config, **options}
    if not isinstance(loader, DatasetRecord):
        return cast(Iterable[Example], loader(**options))
    if registry.data_dir:
        options = loader.mirror_option(registry.data_dir) | options
    return loaded_record(loader, **options)


def register_evaluator(name: str, evaluator: Callable[..., Evaluator] | Evaluator) -> None:
    """Register an evaluator's class, or a function or object in its place."""
    registry.register("evaluator", name, evaluator)


def register_metric(name: str, metric: Callable[..., Metric] | Metric) -> None:
    """Register a metric's class, or a function or object in its place."""
    registry.register("metric", name, metric)


def get_metric(name: str) -> Any:
    """Return what is registered as a metric under that name."""
    return registry.get("metric", name)


def register_system(name: str, system: Callable[..., System] | System) -> None:
    """Register a system's class, or a function or object in its place."""
    registry.register("system", name, system)


def register_reporter(name: str, reporter: "Reporter") -> None:
    """Register a function that writes a report, for `cbench run --output NAME` and `export`."""
    registry.register("reporter", name, reporter)


def register_memory_system(name: str, system: Callable[..., MemorySystem] | MemorySystem) -> None:
    """Register a memory system's class, or a function or object in its place."""
    registry.register("memory_system", name, system)
