"""Progress without a terminal: whole lines, now and then, with what a person wants to know."""

import io
import time
from types import SimpleNamespace

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


def test_a_system_that_has_all_its_rows_has_no_rate(log: Log) -> None:
    with open_progress(True, {}, log) as display:
        display.set("quick", 0, 0, 5)
        display.set("slow", 0, 0, 1000)
        display.set("quick", 5, 0, 5)
        display.set("slow", 10, 0, 1000)
        until(log, "left")
    told = next(line for line in log.lines() if "left" in line)
    assert told.startswith("quick 5/5  slow 10/1000 ")
    assert told.count("rows/") == 1


def test_a_system_that_waits_for_its_turn_tells_nothing_of_the_time_left(log: Log) -> None:
    with open_progress(True, {}, log) as display:
        for system, rows in (("first", 10), ("second", 1)):
            display.set(system, 0, 0, 1000)
            display.set(system, rows, 0, 1000)
        until(log, "rows/")
        assert "left" not in log.getvalue()
        display.set("second", 4, 0, 1000)
        until(log, "left")
    told = next(line for line in log.lines() if "rows/" in line)
    assert told.endswith("second 1/1000")


def test_a_pace_is_that_of_the_last_rows(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    counts = progress._Counts({})
    counts.set("mine", 0, 0, 1000)
    for second in range(1000, 1100):
        clock[0] = float(second)
        counts.set("mine", second - 999, 0, 1000)
    assert counts.rate("mine") == pytest.approx(1.0, rel=0.1)
    assert counts.seconds_left() == pytest.approx(900, rel=0.1)


def test_a_bar_that_is_full_keeps_its_rate_and_waits_for_nothing(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "isatty", lambda: True)
    for name in ("CI", "TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    with open_progress(True, {"quick": 5, "slow": 1000}, log) as display:
        display.advance("quick", 5, 0)
        display.advance("slow", 10, 0)
        display.wait("slow is not there")
    *_, quick, slow = [line for line in log.lines() if "/" in line]
    assert "5/5" in quick
    assert "rows/s" in quick
    assert "waiting" not in quick
    assert "waiting" in slow


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
