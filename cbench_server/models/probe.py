"""Probes: whether the models that a run asks are there, found out before its first row."""

import inspect
from typing import Any

from cbench_server.contract import optional_method
from cbench_server.errors import CallFailed, SystemUnreachable


async def probe(what: str, component: Any) -> None:
    """Refuse what asks a model whose server is not there, or is no server of models.

    Such components have an awaitable `probe` and `close_connections`; others ask nobody.
    """
    ask, close = (optional_method(component, name) for name in ("probe", "close_connections"))
    if ask is None or close is None or not inspect.iscoroutinefunction(ask):
        return
    try:
        await ask()
    except CallFailed as error:
        await close()
        # The name of a model that is not there gets the same answer.
        checked = "URL and model" if error.failure.reason == "HTTP_404" else "URL"
        told = f"{what} at {str(error).rstrip('.')}. Check its {checked}."
        raise SystemUnreachable(told) from error
