"""The systems that come with cbench-server, and what the runner calls systems through."""

from collections.abc import Callable

from cbench_server.systems.controls import Identity, RandomDrop, TruncateHead, TruncateTail
from cbench_server.systems.memory_baselines import Bm25, FullHistory, LastN
from cbench_server.types import MemorySystem, System

BUILTINS: dict[str, Callable[..., System]] = {
    control.name: control for control in (Identity, TruncateHead, TruncateTail, RandomDrop)
}
"""Factories by name; a spec's options are their keyword arguments."""

MEMORY_BUILTINS: dict[str, Callable[..., MemorySystem]] = {
    baseline.name: baseline for baseline in (FullHistory, LastN, Bm25)
}
"""The same for memory systems; each scope gets an object of its own."""

__all__ = ["BUILTINS", "MEMORY_BUILTINS"]
