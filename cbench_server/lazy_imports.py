"""Names whose modules are imported when they are first used, and packages that may be absent.

A package that lists many things would otherwise load all of them, and what
they need, when one is wanted.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cbench_server.errors import InvalidInput

EXTRAS = {
    "datasets": "hub",
    "huggingface_hub": "hub",
    "pyarrow": "parquet",
    "math_verify": "math",
    "jieba": "chinese",
    "pandas": "pandas",
    "polars": "polars",
    "fsspec": "s3",
    "ray": "ray",
    "psycopg": "postgres",
    "opentelemetry.exporter": "otel",
}
"""Packages that a plain install leaves out, and the extra of pyproject.toml that brings each."""


def is_here(package: str) -> bool:
    """Whether a package, or a part of one, can be imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # what it is a part of is absent
        return False


def require(package: str, purpose: str) -> None:
    """Raise InvalidInput with the command that installs an optional package, if it is absent.

    `purpose` is the beginning of a sentence that ends with the package's name.
    """
    if not is_here(package):
        raise InvalidInput(
            f"{purpose} {package.replace('_', '-')}, which is not installed. "
            f"Install it with: {command_for(EXTRAS[package])}"
        )


def command_for(extra: str) -> str:
    """Return the command that adds an extra to an install."""
    return f'pip install "cbench-server[{extra}]"'


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
