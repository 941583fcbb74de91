"""The model that judges ask, and algebra that is imported once."""

from collections.abc import Iterator

import pytest

from tests.fixtures import preloaded
from tests.fixtures.model_server import clean_environment, server

__all__ = ["clean_environment", "server"]


@pytest.fixture(scope="package", autouse=True)
def algebra() -> Iterator[None]:
    """Fork the programs that compare symbols; they import for more than a second each."""
    with preloaded.in_asyncio("math_verify", "sympy"):
        yield
