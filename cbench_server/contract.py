"""The contract of components: all that one may say of itself, and the one place that reads it.

A system, evaluator or metric needs what its Protocol in types.py demands. What
follows is optional: attributes of the object or its class, by the names they
have in `ComponentInfo`, except where another is given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from cbench_server.errors import contained
from cbench_server.types import Example, Placement, ScoreInfo

_PLACEMENTS = get_args(Placement)


@dataclass(frozen=True, slots=True)
class ComponentInfo:
    """What a component says of itself."""

    version: str = ""
    """By which stored answers, or equal scores, are known to be its own."""
    description: str = ""
    options: Mapping[str, Any] | None = None
    """The keyword arguments its constructor was given, so that an equal one can be made."""
    max_concurrency: int | None = None
    """Calls a system takes at once."""

    # Evaluators.
    placement: Placement = "thread"
    """Where it runs: `inline`, `thread`, `worker` or `io`."""
    inline_limit: int | None = None
    """Characters of a pair beyond which an `inline` one leaves the loop, if fewer than usual."""
    reads: str = ""
    """`response` or `context`: without a response, those that read it are left out."""
    required_fields: tuple[str, ...] = ()
    """Fields of the original without which it has nothing to say."""
    scores: tuple[ScoreInfo, ...] = ()
    """Given as `score_infos`."""
    has_own_limits: bool = False
    """Whether it limits all its waits itself; given as `patience = None`."""
    timeout: float | None = None
    """Seconds for one pair, if not the usual ones; given as `patience`."""
    applies: Callable[[Example], object] | None = None
    """Tells from an original alone whether it can be scored; else the required fields do."""
    asks_model: bool = False
    """Whether it needs a key, which only the operator of the daemon may give it."""
    runs_programs: bool = False
    """Whether it needs a sandbox."""

    # Metrics.
    keys: tuple[str, ...] = ()
    """The values it gives."""


def info_of(component: Any) -> ComponentInfo:
    """Read what a component, or its class, says of itself."""
    with contained(f'"{type(component).__name__}", asked what it says of itself,'):
        return _read(component)


def _read(component: Any) -> ComponentInfo:
    patience = getattr(component, "patience", 0)
    placement: Any = getattr(component, "placement", "thread")
    return ComponentInfo(
        version=str(getattr(component, "version", "") or ""),
        description=str(getattr(component, "description", "") or ""),
        options=_mapping(getattr(component, "options", None)),
        max_concurrency=getattr(component, "max_concurrency", None),
        placement=placement if placement in _PLACEMENTS else "thread",
        inline_limit=getattr(component, "inline_limit", None),
        reads=str(getattr(component, "reads", "")),
        required_fields=tuple(getattr(component, "required_fields", ())),
        scores=tuple(getattr(component, "score_infos", ())),
        has_own_limits=patience is None,
        timeout=patience or None,
        applies=getattr(component, "applies", None),
        asks_model=bool(getattr(component, "asks_model", False)),
        runs_programs=bool(getattr(component, "runs_programs", False)),
        keys=tuple(getattr(component, "keys", ())) if not _is_mapping(component) else (),
    )


def name_of(component: Any) -> str | None:
    """Return a component's name; None for one that has none, such as a function that makes one."""
    name = getattr(component, "name", None)
    return name if isinstance(name, str) else None


def aliases_of(component: Any) -> tuple[str, ...]:
    """Return the other names that a component may be asked for by."""
    return tuple(getattr(component, "aliases", ()))


def optional_method(component: Any, name: str) -> Callable[..., Any] | None:
    """Return a method that a component need not have; None if it has not.

    They are `assess` of evaluators, `across` of metrics, and of systems the
    awaitable twins (`aprocess` and so on), `with_scope` and `aclose`. What asks a
    model over HTTP has `probe` and `close_connections`.
    """
    method = getattr(component, name, None)
    return method if callable(method) else None


def _mapping(options: Any) -> Mapping[str, Any] | None:
    return options if isinstance(options, Mapping) else None


def _is_mapping(component: Any) -> bool:
    # The `keys` of a dict are something else.
    return callable(getattr(component, "keys", None))
