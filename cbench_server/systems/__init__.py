"""The systems that come with cbench-server, and what the runner calls systems through."""

from collections.abc import Callable

from cbench_server.systems.controls import Identity, RandomDrop, TruncateHead, TruncateTail
from cbench_server.types import System

BUILTINS: dict[str, Callable[..., System]] = {
    control.name: control for control in (Identity, TruncateHead, TruncateTail, RandomDrop)
}
"""Factories by name; a spec's options are their keyword arguments."""

__all__ = ["BUILTINS"]
