"""Source files of a module: those of its package or script and of what they import from here.

Installed packages that are merely imported are left out, and so is whatever is
imported by a name that is computed.
"""

import ast
import hashlib
import os
import sys
import sysconfig
import time
import types
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from cbench_server import __version__

_MOST_FILES = 20_000
_OURS = frozenset({"cbench_server", "cbench_client"})
# What a package decides by, beside its code: prompts, templates, settings.
_TEXTS = (
    *(".py", ".pyx", ".so", ".pyd", ".txt", ".md", ".json", ".jsonl", ".toml", ".yaml", ".yml"),
    *(".ini", ".cfg", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".mustache", ".prompt"),
    *(".xml", ".html", ".sql", ".csv", ".tsv"),
)
_LARGE = 1_000_000
_LOADED_AT = time.time()


class SourceUnknown(Exception):
    """Why the source cannot be known, as the end of a sentence."""


class _Files:
    """Digests of files, each read once while it stays as it is."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], str]] = {}

    def digest(self, path: str) -> str:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
        if status.st_size > _LARGE and not path.endswith(".py"):
            return repr(stamp)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, hashlib.sha256(Path(path).read_bytes()).hexdigest())
            self._known[path] = known
        return known[1]


_files = _Files()
_imports: dict[tuple[str, str], frozenset[str]] = {}


def source_digest(modules: Iterable[str]) -> str:
    """Digest the files that the modules are made of; raises SourceUnknown."""
    found: dict[str, str] = {}
    # What is ours is known by its version, but for the module itself.
    waiting = [_roots(name) for name in sorted(set(modules)) if not _is_standard(name)]
    seen: set[str] = set()
    asked: set[tuple[str, str]] = set()
    while waiting:
        for path in waiting.pop():
            if path in seen:
                continue
            seen.add(path)
            if len(seen) > _MOST_FILES:
                raise SourceUnknown(f"its package has more than {_MOST_FILES:,} files")
            try:
                found[path] = _files.digest(path)
                if path.endswith(".py"):
                    folder = os.path.dirname(path)
                    names = {(name, folder) for name in _imports_of(path, found[path])}
                    waiting += [_imported(*each) for each in sorted(names - asked)]
                    asked |= names
            except OSError as error:
                raise SourceUnknown(f"{path} cannot be read") from error
    _check_loaded(found)
    text = "\n".join([__version__, *(f"{path} {found[path]}" for path in sorted(found))])
    return hashlib.sha256(text.encode()).hexdigest()


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"


def _roots(name: str) -> list[str]:
    """Return the files of the package or script that a loaded module belongs to."""
    module = sys.modules.get(name)
    file = _file_of(module)
    if file is None:
        raise SourceUnknown("it was defined in a console, a notebook or a string")
    if name.partition(".")[0] in _OURS:
        return [file]
    for end in range(1, name.count(".") + 1):
        parent = sys.modules.get(".".join(name.split(".")[:end]))
        if (home := _file_of(parent)) is not None:
            return [*_package_files(os.path.dirname(home))]
    if os.path.basename(file) == "__init__.py":
        return [*_package_files(os.path.dirname(file))]
    return [file]


def _file_of(module: types.ModuleType | None) -> str | None:
    file = vars(module).get("__file__") if module is not None else None
    return os.path.abspath(file) if isinstance(file, str) and os.path.exists(file) else None


def _package_files(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        for name in names:
            if name.lower().endswith(_TEXTS):
                yield os.path.join(place, name)


def _imports_of(path: str, digest: str) -> frozenset[str]:
    """Return the first parts of the names that a file imports, anywhere in it."""
    key = (path, digest)
    if key not in _imports:
        try:
            tree = ast.parse(Path(path).read_bytes())
        except (SyntaxError, ValueError):
            tree = ast.Module([], [])
        names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module)
        _imports[key] = frozenset(name.partition(".")[0] for name in names)
    return _imports[key]


def _imported(name: str, folder: str) -> list[str]:
    """Return the files of a module imported from a folder, if it is neither standard
    nor installed."""
    if name in _OURS or name == "__main__" or _is_standard(name):
        return []
    spec = _spec_of(name, folder)
    if spec is None or spec.origin in ("built-in", "frozen"):
        return []
    places = [*(spec.submodule_search_locations or ())]
    if any(_is_installed(path) for path in (spec.origin or "", *places) if path):
        return []
    if places:
        return [path for place in places for path in _package_files(os.path.abspath(place))]
    return [os.path.abspath(spec.origin)] if spec.origin else []


def _spec_of(name: str, folder: str) -> ModuleSpec | None:
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__spec__ is not None:
        return loaded.__spec__
    try:
        return PathFinder.find_spec(name, [*sys.path, folder])
    except (ImportError, ValueError):
        return None


def _is_installed(path: str) -> bool:
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    parts = Path(path).parts
    return (
        "site-packages" in parts
        or "dist-packages" in parts
        or any(Path(path).is_relative_to(place) for place in places if place)
    )


def _check_loaded(files: Mapping[str, str]) -> None:
    """Make sure that modules are loaded as their files are now.

    Only a file that was written since can differ. What was rewritten on import,
    as pytest rewrites tests, differs from its file without having changed.
    """
    for module in list(sys.modules.values()):
        path = _file_of(module)
        if path is None or path not in files or not path.endswith(".py"):
            continue
        if os.stat(path).st_mtime > _LOADED_AT and not _is_as_loaded(module, path):
            raise SourceUnknown(f"{path} has changed since it was imported")


def _is_as_loaded(module: types.ModuleType, path: str) -> bool:
    try:
        whole = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    codes = set(_codes_in(whole))
    own = [value for value in vars(module).values() if _is_of(value, module)]
    members = [each for value in own if isinstance(value, type) for each in vars(value).values()]
    functions = [each for each in (*own, *map(unwrapped, members)) if _is_function(each)]
    loaded = [each.__code__ for each in functions]
    return all(code in codes for code in loaded if os.path.abspath(code.co_filename) == path)


def _is_function(value: object) -> bool:
    return isinstance(value, types.FunctionType)


def unwrapped(member: object) -> object:
    """Return the function within a static or class method or a property."""
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    return member.fget if isinstance(member, property) else member


def _is_of(value: object, module: types.ModuleType) -> bool:
    if isinstance(value, type | types.FunctionType):
        return value.__module__ == module.__name__
    return False


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_in(constant)
