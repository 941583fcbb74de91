"""`--exec` and `--http`: systems without an SDK, asked in JSON."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_server import evaluate
from cbench_server.bridges.program import Program
from cbench_server.bridges.systems import BridgedSystem
from tests.cli.conftest import PROGRAMS, Cbench, complaint
from tests.fixtures.ports import held_port

_RUN = ("run", "--dataset", "long-notes", "-n", "6", "--output", "json", "--ask-again", "0")
Web = Callable[[str], str]
Rows = list[dict[str, Any]]


def program(manner: str, *words: object) -> str:
    """Return the command of programs/lines.py."""
    return shlex.join([sys.executable, str(PROGRAMS / "lines.py"), manner, *map(str, words)])


def rows_of(cbench: Cbench, *flags: object, **variables: str) -> Rows:
    """Run, and return the rows."""
    finished = cbench(*_RUN, *flags, **variables)
    assert finished.stdout, finished.stderr
    rows: Rows = json.loads(finished.stdout)["rows"]
    return rows


def tokens_left(rows: Rows, system: str) -> dict[str, int]:
    """Return the size of what a system left, by example."""
    assert not [row["failure"] for row in rows if row.get("failure")]
    return {row["example_id"]: row["output_tokens"] for row in rows if row["system"] == system}


def failures(rows: Rows) -> set[tuple[str, str]]:
    """Return how rows failed."""
    return {
        (row["failure"]["reason"], row["failure"]["message"]) for row in rows if row.get("failure")
    }


@pytest.fixture
def web(start: Callable[..., str]) -> Web:
    """Serve programs/web.py, and return its URL."""
    return lambda manner: f"http://{start(sys.executable, PROGRAMS / 'web.py', '0', manner)}/do"


def test_every_road_gives_the_same_rows(cbench: Cbench, web: Web) -> None:
    url = web("plain")
    command = ["--exec", program("plain"), "--http", url, "--name", "lines", "--name", "web"]
    rows = rows_of(cbench, *command, "--option", "keep=150")
    left = tokens_left(rows, "lines")
    assert len(left) == 6
    assert max(left.values()) < 90
    assert left == tokens_left(rows, "web")
    once = ["--exec", program("once"), "--exec-mode", "once", "--name", "once"]
    batch = ["--http", url, "--http-batch", "3", "--name", "batch"]
    rows = rows_of(cbench, *once, "--name", "batch", *batch[:4], "--option", "keep=150")
    assert tokens_left(rows, "once") == left == tokens_left(rows, "batch")


def test_a_daemon_elsewhere_has_the_bridge_attached_and_is_sent_no_command(
    cbench: Cbench, daemon_address: str
) -> None:
    rows = rows_of(cbench, "--exec", program("plain"), "--name", "mine", "--server", daemon_address)
    assert len(tokens_left(rows, "mine")) == 6
    with BenchClient(daemon_address) as client:
        (run,) = client.list()
        assert run.spec.systems[0].attached.startswith("mine-")
        assert "lines.py" not in str(run)


def test_a_program_is_not_told_the_token_of_the_daemon(
    cbench: Cbench, start: Callable[..., str]
) -> None:
    from tests.fixtures import preloaded

    address = start(
        *(preloaded.CBENCH_SERVER, "--address", "127.0.0.1:0", "--log-level", "error"),
        CBENCH_TOKEN="a-token-of-the-daemon",
    )
    command = ["--exec", program("environment"), "--server", address]
    rows = rows_of(cbench, *command, "--token", "a-token-of-the-daemon")
    ((_, variables),) = failures(rows)
    assert "PATH" in variables
    assert "TOKEN" not in variables


def test_what_a_program_for_one_row_leaves_running_is_ended(cbench: Cbench) -> None:
    leaving = shlex.join(["sh", "-c", f"sleep 600 & exec {program('once')}"])
    once = ["--exec", leaving, "--exec-mode", "once", "--name", "leaving", "--timeout", "20s"]
    assert len(tokens_left(rows_of(cbench, *once, "-n", "1"), "leaving")) == 1


def test_a_death_costs_only_the_row_that_causes_it(cbench: Cbench, tmp_path: Path) -> None:
    rows = rows_of(cbench, "--exec", program("dies-once", tmp_path / "died"), "--name", "frail")
    assert len(tokens_left(rows, "frail")) == 6
    # Where all numbers are floats, so is an id.
    assert len(tokens_left(rows_of(cbench, "--exec", program("floats"), "--name", "r"), "r")) == 6
    finished = cbench(*_RUN, "--exec", program("deadly"), "--name", "deadly")
    assert "no patience with this one" in finished.stderr
    rows = json.loads(finished.stdout)["rows"]
    assert [row["example_id"] for row in rows if row.get("failure")] == ["long-notes-003"]


@pytest.mark.parametrize(
    ("manner", "reason", "says"),
    [
        ("junk", "BAD_RETURN", "not JSON"),
        ("nameless", "BAD_RETURN", "without the id of a call in progress"),
        ("refuses", "TOO_HARD", "not this one"),
        ("later", "BUSY", "later"),
    ],
)
def test_bad_answers_fail_their_rows_at_once(
    cbench: Cbench, manner: str, reason: str, says: str
) -> None:
    rows = rows_of(cbench, "--exec", program(manner))
    assert len(rows) == 6
    for found, message in failures(rows):
        assert found == reason
        assert says in message


def test_servers_that_are_busy_are_asked_again_and_others_named(cbench: Cbench, web: Web) -> None:
    rows = rows_of(cbench, "--http", web("busy"), "--name", "busy")
    assert len(tokens_left(rows, "busy")) == 6
    ((reason, message),) = failures(rows_of(cbench, "--http", web("page")))
    assert reason == "BAD_RETURN"
    assert "<html>hello" in message
    locked = web("locked")
    ((reason, message),) = failures(rows_of(cbench, "--http", locked))
    assert reason == "HTTP_401"
    assert "who are you?" in message
    ((reason, message),) = failures(rows_of(cbench, "--http", web("moved")))
    assert reason == "HTTP_307"
    assert "it is at '/do/' now" in message
    flags = ("--http", locked, "--http-token-env", "KEY", "--name", "locked")
    assert len(tokens_left(rows_of(cbench, *flags, KEY="sesame"), "locked")) == 6


def test_a_memory_can_be_a_program(cbench: Cbench) -> None:
    finished = cbench(
        *("memory", "run", "--dataset", "mini-memory", "-n", "1", "--output", "json"),
        *("--exec", program("memory"), "--name", "all", "--no-anchors"),
    )
    rows = json.loads(finished.stdout)["rows"]
    assert rows, finished.stderr
    assert not any(row.get("failure") for row in rows)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--exec", "no-such-program --at all"), "there is no program no-such-program"),
        (("--exec", ""), "is empty"),
        (("--http", "localhost"), "is not a URL"),
        (("--http", "http://127.0.0.1:1/"), "nobody listens at"),
        (("--http", "http://127.0.0.1:1/", "--http-batch", "0"), "0"),
        (("--exec", "cat", "--exec-mode", "twice"), "twice"),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(
    cbench: Cbench, flags: tuple[str, ...], says: str
) -> None:
    finished = cbench("run", "--dataset", "mini-qa", *flags)
    assert finished.returncode == 2
    assert says in complaint(finished)


def test_a_program_that_does_not_start_is_named_and_not_its_bridge(cbench: Cbench) -> None:
    finished = cbench("run", "--dataset", "mini-qa", "--exec", "false")
    assert finished.returncode == 1
    assert complaint(finished) == (
        "false did not start. Its last lines: `false` ended with exit code 1"
    )


def test_a_program_is_evaluated_in_python() -> None:
    bridge = Program(shlex.split(program("plain")))
    try:
        result = evaluate(
            [BridgedSystem(bridge, "lines")], "long-notes", max_examples=4, asked_again=0
        )
    finally:
        bridge.close()
    assert [row.failure for row in result.rows] == [None] * 4
    assert all(row.output_tokens < row.input_tokens for row in result.rows)


HANGING = """\
import json, pathlib, sys, time
hung = pathlib.Path("hung")
for place, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if place == 2 and not hung.exists():
        hung.write_text(asked["example"]["id"])
        time.sleep(3600)
    print(json.dumps({"id": asked["id"], "example": asked["example"]}), flush=True)
"""


def test_a_program_that_hangs_on_a_row_is_ended_and_costs_that_row_at_most(
    cbench: Cbench, tmp_path: Path
) -> None:
    (tmp_path / "hanging.py").write_text(HANGING)
    command = ["run", "--exec", f"{sys.executable} hanging.py", "--exec-concurrency", "1"]
    command += ["--dataset", "mini-qa", "-n", "6", "--ask-again", "0", "--output", "json"]
    done = cbench(*command, "--timeout", "10s")
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 6
    failed = {row["example_id"]: row["failure"]["reason"] for row in rows if row.get("failure")}
    # It may have been made again, alone, and answered then.
    assert failed.keys() <= {(tmp_path / "hung").read_text()}
    assert {*failed.values()} <= {"DEADLINE_EXCEEDED"}
    assert "is ended, so that others do not wait for it" in done.stderr


def test_a_program_that_keeps_its_answers_in_a_buffer_is_told_of_once(cbench: Cbench) -> None:
    command = f"{sys.executable} -c 'import sys; [len(line) for line in sys.stdin]'"
    done = cbench(*_RUN, "--exec", command, "--timeout", "1s", "--timed-rows", "0", "-n", "3")
    assert len(json.loads(done.stdout)["rows"]) == 3
    assert done.stderr.count("has not answered yet. If it has answered") == 1


def test_a_launched_system_that_died_is_named_and_not_its_address(
    cbench: Cbench, tmp_path: Path
) -> None:
    target = f"127.0.0.1:{held_port()}"
    (tmp_path / "dying.sh").write_text(f"echo 'cbench|1|tcp|{target}'; echo oh no >&2; exit 3\n")
    done = cbench("run", "--launch", "sh dying.sh", "--dataset", "mini-qa", "-n", "2", "--quiet")
    assert done.returncode == 1
    assert "dying ended with exit code 3" in complaint(done)
    assert "oh no" in complaint(done)
    assert "check the address" not in done.stderr


@pytest.mark.parametrize("name", ["a/b", "  ", "a\nb", "n" * 201])
def test_a_name_that_cannot_be_shown_is_refused_before_a_program_starts(
    cbench: Cbench, tmp_path: Path, name: str
) -> None:
    started = tmp_path / "started"
    done = cbench(*_RUN, "--exec", f"touch {started}", "--name", name)
    assert done.returncode != 0
    assert "a system's name has" in done.stderr
    assert "Traceback" not in done.stderr
    assert not started.exists()


def test_the_longest_name_is_attached_too(cbench: Cbench, daemon_address: str) -> None:
    name = "n" * 200
    rows = rows_of(cbench, "--exec", program("plain"), "--name", name, "--server", daemon_address)
    assert {row["system"] for row in rows} == {name}


def test_a_server_that_fails_for_ever_is_told_of_once_while_it_is_asked_again(
    cbench: Cbench, web: Web
) -> None:
    finished = cbench(*_RUN, "--http", web("broken"), "--name", "mine", "--timeout", "4s")
    told = [line for line in finished.stderr.splitlines() if "answered 500: 'out of order'" in line]
    assert len([line for line in told if "requests are sent again" in line]) == 1, finished.stderr
    assert told[0].startswith("mine: http://")
    assert {reason for reason, _ in failures(json.loads(finished.stdout)["rows"])} == {"HTTP_500"}
