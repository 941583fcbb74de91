"""Libraries of others, imported when an adapter is made."""

from importlib import import_module
from typing import Any


class MissingLibrary(ImportError):
    """An adapter's library is not installed; the message says how to add it."""


def library(module: str, package: str) -> Any:
    """Import a module, or say which package brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingLibrary(
            f"{module} cannot be imported ({error}). Add it with: pip install {package}"
        ) from error
