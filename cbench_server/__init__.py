"""cbench-server: evaluate systems that change an LLM's context, in any language."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cbench_client import RemoteSystem
    from cbench_server.evaluation import evaluate, evaluate_memory
    from cbench_server.results import EvalResult, EvalRow
    from cbench_server.systems.openai_proxy import OpenAIProxy

# Imported on first use, so that `cbench --help` and light scripts start fast.
_HOMES = {
    "EvalResult": "cbench_server.results",
    "EvalRow": "cbench_server.results",
    "OpenAIProxy": "cbench_server.systems.openai_proxy",
    "RemoteSystem": "cbench_client",
    "evaluate": "cbench_server.evaluation",
    "evaluate_memory": "cbench_server.evaluation",
}

__all__ = [
    "EvalResult",
    "EvalRow",
    "OpenAIProxy",
    "RemoteSystem",
    "__version__",
    "evaluate",
    "evaluate_memory",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
