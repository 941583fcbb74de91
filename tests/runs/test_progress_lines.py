"""Progress without a terminal: whole lines, now and then, with what a person wants to know."""

import io
import time

import pytest

from cbench_server.runs import progress
from cbench_server.runs.progress import open_progress


class Log(io.StringIO):
    """A stream that is no terminal."""

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(progress, "_FIRST_LINE_S", 0.02)
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.02)
    return Log()


def until(log: Log, words: str) -> None:
    deadline = time.monotonic() + 60
    while words not in log.getvalue():
        assert time.monotonic() < deadline, log.getvalue()
        time.sleep(0.01)


def test_a_log_gets_rate_failures_and_time_left(log: Log) -> None:
    with open_progress(True, {}, log) as display:
        display.set("mine", 0, 0, 1000)
        display.set("mine", 10, 2, 1000)
        until(log, "left")
    assert "\r" not in log.getvalue()
    assert "\033" not in log.getvalue()
    told = next(line for line in log.lines() if "left" in line)
    assert told.startswith("mine 10/1000 ")
    assert "rows/" in told
    assert "(2 failed)" in told
    assert log.lines()[-1] == "mine 10/1000 (2 failed)"


def test_a_log_says_again_what_a_run_waits_for(log: Log) -> None:
    with open_progress(True, {}, log) as display:
        display.set("mine", 3, 0, 9)
        display.wait("mine is not there")
        until(log, "mine 3/9  waiting for 1s: mine is not there")
        display.wait("")
    assert log.lines().count("waiting: mine is not there") == 1
    assert "continuing" in log.lines()


def test_quiet_is_quiet(log: Log) -> None:
    with open_progress(False, {}, log) as display:
        display.set("mine", 3, 0, 9)
        display.wait("mine is not there")
        display.note("a note")
    assert log.getvalue() == ""


@pytest.mark.parametrize("variable", [("CI", "true"), ("TERM", "dumb")], ids=["CI", "dumb"])
def test_a_terminal_that_is_a_log_gets_lines(
    variable: tuple[str, str], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "isatty", lambda: True)
    monkeypatch.setenv(*variable)
    with open_progress(True, {}, log) as display:
        display.set("mine", 9, 0, 9)
    assert log.lines() == ["mine 9/9"]
