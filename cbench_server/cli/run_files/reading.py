"""Run files as they are read: each mistake with its line, its key and what was meant."""

import argparse
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cbench_server.cli.exits import UsageError, did_you_mean
from cbench_server.cli.run_files import lines
from cbench_server.cli.run_files.schema import TABLES, TOP, WAYS, Key, Table, table
from cbench_server.cli.run_files.ways import out_of_place
from cbench_server.cli.values import duration

Document = dict[str, Any]
Mistake = tuple[lines.Path, str]
"""Where in a file it stands, and what is wrong there."""
_MAX_BYTES = 1_000_000
_SECRET = re.compile(r"(api[_-]?key|token|password|secret|authorization|bearer)s?", re.I)
_PRICES = ("input_usd", "output_usd", "cached_input_usd")


class BadFile(UsageError):
    """A run file with mistakes, each on a line of its own."""

    def __init__(self, name: str, problems: list[tuple[int, str]]) -> None:
        self.problems = [f"{name}:{line}: {text}" for line, text in sorted(problems)]
        super().__init__("\n".join(self.problems))


class _Wrong(Exception):
    """A value that cannot be what its key needs."""

    def __init__(self, text: str, *inside: str | int) -> None:
        self.inside = inside
        super().__init__(text)


def read_document(name: str) -> Document:
    """Read and check a run file."""
    return parse_document(text_of(name), name)


def text_of(name: str) -> str:
    """Read the text of a run file; editors of Windows begin theirs with a mark of its order."""
    path = Path(name)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{name} is larger than a run file can be (1 MB).")
        return path.read_text("utf-8").removeprefix("\ufeff")
    except OSError as error:
        hint = " Write one with: cbench config init" if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"cannot read {name}: {error.strerror}.{hint}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: {error.reason} at byte {error.start}.") from error


def parse_document(text: str, name: str = "run file") -> Document:
    """Check a text, and return what it says in one form: lists as lists, times in seconds."""
    document, mistakes = read_all(text, name)
    if mistakes:
        raise bad_file(name, text, mistakes)
    return document


def read_all(text: str, name: str) -> tuple[Document, list[Mistake]]:
    """Return what a text says without its mistakes, and these."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        what = str(error)[: found.start()] if found else str(error).partition(" (at end")[0]
        line = int(found[1]) if found else text.count("\n") + 1
        raise BadFile(name, [(line, f"not TOML: {what[:1].lower()}{what[1:]}.")]) from None
    checker = _Checker()
    return checker.document(raw), checker.mistakes


def bad_file(name: str, text: str, mistakes: Iterable[Mistake]) -> BadFile:
    """Return mistakes as an error that tells each with its line."""
    found = lines.lines_of(text)
    return BadFile(
        name, [(lines.line_of(found, path), f"{written(path)} {what}") for path, what in mistakes]
    )


class _Checker:
    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def document(self, raw: Mapping[str, Any]) -> Document:
        tables = {each.name: each for each in TABLES if each.name}
        document: Document = {}
        top = {name: value for name, value in raw.items() if name not in tables}
        document |= self._entry(TOP, top, (), [*tables])
        for name, value in raw.items():
            made = tables.get(name)
            if made is None:
                continue
            if made.is_list:
                document[name] = self._entries(made, value)
            elif isinstance(value, dict):
                document[name] = self._entry(made, value, (name,))
            else:
                self._tell((name,), f"is a table; write it as [{name}].")
        if kind := document.get("kind"):
            self.mistakes += of_another_kind(document, kind)
        return {name: value for name, value in document.items() if value not in ({}, [])}

    def _entries(self, made: Table, value: Any) -> list[Document]:
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            self._tell((made.name,), f"is a list of tables; write each as [[{made.name}]].")
            return []
        found = []
        for place, each in enumerate(value):
            path = (made.name, place)
            entry = self._entry(made, each, path)
            for inside, problem in _of_entry(made, each):
                self._tell((*path, *inside), problem)
            found.append(entry)
        return found

    def _entry(
        self, made: Table, raw: Mapping[str, Any], path: lines.Path, others: list[str] | None = None
    ) -> Document:
        entry = {}
        for name, value in raw.items():
            key = made.key(name)
            if key is None:
                self._tell((*path, name), _unknown(made, name, others or []))
                continue
            try:
                entry[name] = _CHECKS[key.kind](key, value)
            except _Wrong as wrong:
                self._tell((*path, name, *wrong.inside), str(wrong))
            except argparse.ArgumentTypeError as error:
                self._tell((*path, name), f"is wrong: {error}")
        return entry

    def _tell(self, path: lines.Path, text: str) -> None:
        self.mistakes.append((path, text))


def of_another_kind(document: Document, kind: str) -> Iterator[Mistake]:
    """Tell of keys that are not for runs of this kind."""
    for path, key in keys_of(document):
        if key.only not in ("", kind):
            runs = "`cbench memory run`" if key.only == "memory" else "`cbench run`"
            yield path, f"is for {runs} only, and kind is {kind}."


def keys_of(document: Document) -> Iterator[tuple[lines.Path, Key]]:
    """Return every key of a document with its path."""
    for name, value in document.items():
        made = table(name)
        if made is None:
            if key := TOP.key(name):
                yield (name,), key
        elif made.is_list:
            for place, entry in enumerate(value):
                yield from _keys(made, entry, (name, place))
        else:
            yield from _keys(made, value, (name,))


def is_secret(name: str) -> bool:
    """Whether a key is one of those that hold secrets."""
    return _SECRET.fullmatch(name) is not None


def written(path: lines.Path) -> str:
    """Write a path as people do: systems[0].options.ratio."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + part
    return text


def _keys(made: Table, entry: Document, path: lines.Path) -> Iterator[tuple[lines.Path, Key]]:
    for name in entry:
        if key := made.key(name):
            yield (*path, name), key


def _unknown(made: Table, name: str, others: list[str]) -> str:
    if is_secret(name):
        return (
            "would be a secret, and none stands in a run file: name a `credential` of the "
            "daemon's configuration, or set OPENAI_API_KEY, CBENCH_TOKEN or the variable of "
            "`token_env`."
        )
    known = [key.name for key in made.keys] + others
    where = f"a key of {made.name}" if made.name else "a key or a table of a run file"
    hint = did_you_mean(name, known) or f" Known: {', '.join(known)}."
    return f"is not {where}.{hint}"


def _of_entry(made: Table, raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Tell what is wrong with an entry as a whole."""
    if made.name == "systems":
        given = [name for name in WAYS if name in raw]
        if len(given) != 1:
            ways = ", ".join(f"`{name}`" for name in WAYS)
            what = f"has {' and '.join(given)}" if given else "does not say where it is"
            yield (), f"{what}; give exactly one of {ways}."
        yield from out_of_place(raw)
    elif made.name == "datasets":
        if not {"name", "file", "upload"} & {*raw}:
            yield (), "names no examples; give `name`, or `file`."
    elif "name" not in raw:
        yield (), "needs a `name`."


def _text(key: Key, value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"is {_shown(value)}, and should be text.")
    if key.name in ("proxy", "http", "url") and _has_password(value):
        raise _Wrong(
            "has a password in its address, and secrets do not stand in a run file. Name a "
            "`credential` of the daemon's configuration, or `token_env` for an `http`."
        )
    return value


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        return False


def _choice(key: Key, value: Any) -> str:
    if value not in key.choices:
        hint = did_you_mean(str(value), key.choices) or f" Known: {', '.join(key.choices)}."
        raise _Wrong(f"cannot be {_shown(value)}.{hint}")
    return str(value)


def _flag(_: Key, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"is {_shown(value)}, and should be true or false.")
    return value


def _whole(least: int | None) -> Callable[[Key, Any], int]:
    def check(_: Key, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _Wrong(f"is {_shown(value)}, and should be a whole number.")
        if least is not None and value < least:
            raise _Wrong(f"is {value}, and should be at least {least}.")
        if not -(2**63) <= value < 2**63:
            raise _Wrong(f"is {value}, which is too large.")
        return value

    return check


def _number(_: Key, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _Wrong(f"is {_shown(value)}, and should be a number.")
    return value


def _dollars(key: Key, value: Any) -> float:
    if _number(key, value) <= 0:
        raise _Wrong(f"is {value}, and should be US dollars above 0.")
    return value  # type: ignore[no-any-return]


def _numbers(key: Key, value: Any) -> list[float]:
    if not isinstance(value, list) or len(value) < 2:
        raise _Wrong("should be a list of two numbers or more, such as [0.1, 0.5].")
    found = [_number(key, each) for each in value]
    for each in found:
        if found.count(each) > 1:
            raise _Wrong(f"has {each:g} twice; leave one out.")
    return found


def _seconds(key: Key, value: Any) -> float:
    if isinstance(value, str):
        return duration(value)
    if _number(key, value) <= 0:
        raise _Wrong(f"is {value}, and should be a time above 0, such as 30 or '2m'.")
    return float(value)


def _share(_: Key, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    if not isinstance(value, str) or not re.fullmatch(r"\d+|\d+(\.\d+)?%", value):
        raise _Wrong(f"is {_shown(value)}, and should be a number of rows or a share as '5%'.")
    return value


def _texts(key: Key, value: Any) -> list[str]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list):
        raise _Wrong(f"is {_shown(value)}, and should be a text or a list of them.")
    for place, each in enumerate(found):
        if not isinstance(each, str):
            raise _Wrong(f"is {_shown(each)}, and should be text.", place)
        _text(key, each)
    return list(found)


def _pairs(_: Key, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Wrong(f"is {_shown(value)}, and should be a table of texts.")
    for name, each in value.items():
        if not isinstance(each, str):
            raise _Wrong(f"is {_shown(each)}, and should be text in quotes.", name)
    return value


def _options(_: Key, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"is {_shown(value)}, and should be a table such as {{ ratio = 0.3 }}.")
    _check_plain(value)
    return value


def _check_plain(value: Any, *path: str | int) -> None:
    if isinstance(value, dict):
        for name, each in value.items():
            if is_secret(name) and isinstance(each, str):
                raise _Wrong(_unknown(TOP, name, []), *path, name)
            _check_plain(each, *path, name)
    elif isinstance(value, list):
        for place, each in enumerate(value):
            _check_plain(each, *path, place)
    elif isinstance(value, bool) or not isinstance(value, str | int | float):
        if not isinstance(value, bool):
            raise _Wrong(f"is {_shown(value)}; write dates and times as text in quotes.", *path)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _Wrong(f"is {value}, which is too large; write it as text.", *path)


def _owned(key: Key, value: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict):
        raise _Wrong(f"is {_shown(value)}, and should be a table for each system.")
    for name, each in value.items():
        try:
            _options(key, each)
        except _Wrong as wrong:
            raise _Wrong(str(wrong), name, *wrong.inside) from None
    return value


def _price(key: Key, value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise _Wrong(f"is {_shown(value)}, and should be {{ input_usd = 2.5, output_usd = 10 }}.")
    for name, each in value.items():
        if name not in _PRICES:
            raise _Wrong(f"is no part of a price.{did_you_mean(name, _PRICES)}", name)
        if _number(key, each) < 0:
            raise _Wrong(f"is {each}, and no model charges less than 0.", name)
    return value


def _prices(key: Key, value: Any) -> list[dict[str, float]]:
    return [_price(key, each) for each in (value if isinstance(value, list) else [value])]


def _shown(value: Any) -> str:
    names = {bool: "true or false", list: "a list", dict: "a table", str: "text"}
    if isinstance(value, str) and len(value) <= 40:
        return f'"{value}"'
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return names.get(type(value), f"a {type(value).__name__}")


_CHECKS: dict[str, Callable[[Key, Any], Any]] = {
    "text": _text,
    "path": _text,
    "flag": _flag,
    "count": _whole(1),
    "natural": _whole(0),
    "whole": _whole(None),
    "number": _number,
    "numbers": _numbers,
    "dollars": _dollars,
    "seconds": _seconds,
    "share": _share,
    "texts": _texts,
    "choice": _choice,
    "pairs": _pairs,
    "options": _options,
    "owned": _owned,
    "price": _price,
    "prices": _prices,
}
