"""Cases read from TOML files, with the variants that `each` and `over` list.

A case has a `name`, one sentence that `says` what holds, what it `needs`, and
`step`s; `profile` says of whom it is asked. A name with `{each}` or `{over}`
stands for as many cases.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"
NEEDS = frozenset({"program", "command", "stream", "health", "openssl"})
OVER = ("unary", "stream", "attach")
_NEEDS_OF = {"stream": frozenset({"stream"}), "attach": frozenset({"program", "command"})}
PROFILES = ("sdk", "bare")
"""Who is asked: processes built with an SDK, or with nothing but a gRPC library."""
_KEYS = frozenset({"name", "says", "needs", "step", "each", "over", "alone", "profile"})


class BadCase(Exception):
    """A case file is not valid."""


@dataclass(frozen=True)
class Case:
    """One situation, and what must result from it."""

    name: str
    says: str
    steps: tuple[Mapping[str, Any], ...]
    needs: frozenset[str] = frozenset()
    over: str = "unary"
    alone: bool = False
    names: Mapping[str, Any] = field(default_factory=dict)
    profile: str = "sdk"

    @property
    def area(self) -> str:
        """The first part of the name: system, memory, evaluator, server or attach."""
        return self.name.partition("/")[0]


def load_cases(folder: Path = FOLDER) -> list[Case]:
    """Read every case, sorted by name. Raises `BadCase`."""
    cases = [case for path in sorted(folder.glob("*.toml")) for case in _read(path)]
    names = [case.name for case in cases]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadCase(f"two cases are called {', '.join(sorted(twice))}")
    return sorted(cases, key=lambda case: case.name)


def asked_of(profile: str, cases: list[Case]) -> list[Case]:
    """Keep the cases that a profile asks."""
    return [case for case in cases if case.profile == profile]


def select(cases: list[Case], patterns: list[str]) -> list[Case]:
    """Keep the cases whose name, or the beginning of it, one of the patterns matches."""
    if not patterns:
        return cases
    return [
        case
        for case in cases
        if any(
            fnmatchcase(case.name, each) or fnmatchcase(case.name, f"{each.rstrip('/')}/*")
            for each in patterns
        )
    ]


def _read(path: Path) -> Iterator[Case]:
    try:
        document = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise BadCase(f"{path.name}: {error}") from error
    for entry in document.get("case", []):
        where = f"{path.name}: {entry.get('name', 'a case without a name')}"
        if unknown := entry.keys() - _KEYS:
            raise BadCase(f"{where}: unknown keys {', '.join(sorted(unknown))}")
        if not entry.get("name") or not entry.get("says") or not entry.get("step"):
            raise BadCase(f"{where}: a case has a name, a sentence that it says, and steps")
        yield from _expanded(entry, where)


def _expanded(entry: Mapping[str, Any], where: str) -> Iterator[Case]:
    needs, ways = frozenset(entry.get("needs", ())), entry.get("over", ["unary"])
    profile = entry.get("profile", "sdk")
    if unknown := (needs - NEEDS) | (frozenset(ways) - {*OVER}) | ({profile} - {*PROFILES}):
        raise BadCase(f"{where}: unknown {', '.join(sorted(unknown))}")
    for way in ways:
        for each, value in entry.get("each", {"": None}).items():
            yield Case(
                name=entry["name"].replace("{over}", way).replace("{each}", each),
                says=entry["says"],
                steps=tuple(entry["step"]),
                needs=needs | _NEEDS_OF.get(way, frozenset()),
                over=way,
                alone=entry.get("alone", False),
                names={"$each": value} if each else {},
                profile=profile,
            )
