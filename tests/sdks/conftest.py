"""Time to compile, where nothing is compiled yet."""

from pathlib import Path

import pytest

from tests.fixtures.sdks import LONG_SECONDS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))
