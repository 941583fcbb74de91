"""What an error that nobody foresaw tells the client, and what it keeps for the log."""

import logging
from pathlib import Path

import pytest

from cbench_server.rpc.status import told


def test_an_error_of_the_operating_system_tells_no_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(OSError) as caught:
        (tmp_path / ("a" * 300)).read_text()
    assert told(caught.value) == ("INTERNAL", "the daemon failed: OSError: File name too long")
    assert str(tmp_path) in caplog.text
