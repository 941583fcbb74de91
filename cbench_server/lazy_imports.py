"""Names whose modules are imported when they are first used.

A package that lists many things would otherwise load all of them, and what
they need, when one is wanted.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, given the module that each name is in."""

    def find(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


class LazyMapping(Mapping[str, Any]):
    """Components by key, given their names and the `find` that imports a name."""

    def __init__(self, find: Callable[[str], Any], names: Mapping[str, str]) -> None:
        self._find = find
        self._names = names

    def __getitem__(self, key: str) -> Any:
        return self._find(self._names[key])

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
