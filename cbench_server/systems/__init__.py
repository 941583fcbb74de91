"""The systems that come with cbench-server, and what the runner calls systems through."""

from collections.abc import Callable, Mapping

from cbench_server.lazy_imports import LazyMapping, names_of
from cbench_server.types import MemorySystem, System

_find = names_of(
    __name__,
    {
        "Identity": "controls",
        "NoContext": "controls",
        "TruncateHead": "controls",
        "TruncateTail": "controls",
        "RandomDrop": "controls",
        "Lead": "lead",
        "FullHistory": "memories",
        "NoMemory": "memories",
        "LastN": "memories",
        "Bm25": "memories",
    },
)

BUILTINS: Mapping[str, Callable[..., System]] = LazyMapping(
    _find,
    {
        "identity": "Identity",
        "no-context": "NoContext",
        "truncate-head": "TruncateHead",
        "truncate-tail": "TruncateTail",
        "random-drop": "RandomDrop",
        "lead": "Lead",
    },
)
"""Factories by name; a spec's options are their keyword arguments."""

MEMORY_BUILTINS: Mapping[str, Callable[..., MemorySystem]] = LazyMapping(
    _find,
    {
        "full-history": "FullHistory",
        "no-context": "NoMemory",
        "last-n": "LastN",
        "bm25": "Bm25",
    },
)
"""The same for memory systems; each scope gets its own object."""


def is_shipped(name: str, factory: object = None) -> bool:
    """Whether a name, or the factory that is registered under it, is one of these."""
    name = name.replace("_", "-")
    known = [each[name] for each in (BUILTINS, MEMORY_BUILTINS) if name in each]
    return bool(known) if factory is None else factory in known


__all__ = ["BUILTINS", "MEMORY_BUILTINS", "is_shipped"]
