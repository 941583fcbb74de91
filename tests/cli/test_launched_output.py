"""What launched systems print, side by side."""

import threading

import pytest

from cbench_server.cli.launched_output import Voice


def test_lines_that_are_said_at_once_stay_whole(capfd: pytest.CaptureFixture[str]) -> None:
    voice = Voice()

    def talk(name: str) -> None:
        for _ in range(300):
            voice.say(f"{name}: printed")

    talkers = [threading.Thread(target=talk, args=(name,)) for name in "abcdefgh"]
    for each in talkers:
        each.start()
    for each in talkers:
        each.join()
    lines = capfd.readouterr().err.splitlines()
    assert sorted(lines) == sorted(f"{name}: printed" for name in "abcdefgh" for _ in range(300))
