"""`--launch`: systems started for one run, and what becomes of bad ones."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cbench_server.cli import launch, main
from cbench_server.cli.exits import CommandFailed
from cbench_server.cli.launched_output import Output, Voice
from cbench_server.cli.launches import Launches
from tests.cli.conftest import CBENCH, SYSTEM, Cbench, complaint, strict
from tests.fixtures import preloaded
from tests.fixtures.waiting import wait_until

_RUN = ("run", "--dataset", "mini-qa", "-n", "2")


def _python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def test_a_launched_system_is_used_and_stopped_with_its_children(
    cbench: Cbench, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys; "
        "child = subprocess.Popen(['sleep', '1000']); "
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); "
        f"sys.argv = ['system', 'answering']; exec(open({str(SYSTEM)!r}).read())"
    )
    finished = cbench(*_RUN, "--builtin", "identity", "--launch", _python(program))
    assert finished.returncode == 0, finished.stderr
    assert [line.split()[0] for line in finished.stdout.splitlines()[2:4]] == [
        "identity",
        "answering",
    ]
    for pid in map(int, pids.read_text().split()):
        assert not _is_running(pid)


def test_ending_cbench_ends_what_it_launched(tmp_path: Path, environment: dict[str, str]) -> None:
    system = shlex.join([sys.executable, str(SYSTEM), "stuck", str(tmp_path)])
    process = preloaded.Popen(
        [str(CBENCH), *_RUN[:3], "--launch", system], stderr=subprocess.PIPE, env=environment
    )
    with process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "stuck").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.terminate()
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in stderr
    assert not _is_running(int((tmp_path / "stuck").read_text()))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import sys; print('bad luck', file=sys.stderr); sys.exit(3)",
            "ended with exit code 3 before it said where it listens. Its last lines: bad luck",
        ),
        (
            "import time; print('hello', flush=True); time.sleep(60)",
            "did not say where it listens within 0.5s: it must print cbench|1|tcp|HOST:PORT. If it "
            "needs longer to start, pass --launch-timeout. Its last lines: hello",
        ),
        (
            "import time; print('cbench|2|tcp|x:1', flush=True); time.sleep(60)",
            "speaks protocol 2, this cbench speaks 1",
        ),
    ],
    ids=["ends", "says-nothing-of-use", "other-protocol"],
)
def test_a_process_that_is_no_system_is_reported(cbench: Cbench, code: str, expected: str) -> None:
    # Only the second one is waited for in vain.
    patience = "500ms" if "hello" in code else "1m"
    finished = cbench(*_RUN, "--launch", _python(code), "--launch-timeout", patience)
    assert finished.returncode == 1
    assert expected in complaint(finished)


@pytest.mark.parametrize("how", ["once", "always"])
def test_a_system_that_is_killed_while_it_starts_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(launch, "_FIRST_PAUSE_S", 0.001)
    said: list[str] = []
    voice = Voice()
    voice.through = said.append
    serves = 'test -e once && echo "cbench|1|tcp|127.0.0.1:1" && exec sleep 1000; '
    command = f"{serves if how == 'once' else ''}touch once; echo so early >&2; kill -9 $$"
    output = Output("hasty", tmp_path / "log", voice)
    system = launch.Launched(shlex.join(["sh", "-c", command]), tmp_path, output, voice)
    if how == "once":
        assert system.wait() == "127.0.0.1:1"
    else:
        with pytest.raises(CommandFailed, match=r"SIGKILL.* before it said .*so early"):
            system.wait()
    system.stop()
    killed = "hasty was killed by signal 9 (SIGKILL) before it said where it listens; it is started"
    assert len([line for line in said if line.startswith(killed) and "so early" in line]) == (
        1 if how == "once" else launch.MAX_RESTARTS
    )


def test_a_system_that_is_killed_while_it_starts_waits_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setenv("CBENCH_HOME", str(tmp_path / "home"))
    launches = Launches(Voice(quiet=True), 60.0)
    serve = 'echo "cbench|1|tcp|127.0.0.1:$1"; exec sleep 1000'
    # The first does not serve before the second has been started again.
    first = f"until test -e again; do sleep 0.02; done; {serve}"
    second = f"if test -e once; then touch again; {serve}; fi; touch once; kill -9 $$"
    for number, code in enumerate((first, second), 1):
        launches.start(shlex.join(["sh", "-c", code, "it", str(number)]), folder=tmp_path)
    try:
        found = [each.target for each in launches.wait()]
    finally:
        launches.stop()
    assert found == ["127.0.0.1:1", "127.0.0.1:2"]


@pytest.mark.parametrize("place", ["inside", "daemon"])
def test_a_launched_system_that_dies_is_heard_and_started_again(
    cbench: Cbench, place: str, request: pytest.FixtureRequest, home: Path
) -> None:
    server = ["--server", request.getfixturevalue("daemon_address")] if place == "daemon" else []
    words = ["--launch", shlex.join([sys.executable, str(SYSTEM), "mortal"]), "--name", "my-system"]
    finished = cbench("run", "--dataset", "mini-qa", "-n", "4", *words, *server, "--output", "json")
    assert finished.returncode == 0, finished.stderr
    run = strict(finished.stdout)
    failures = {row["example_id"]: row["failure"] for row in run["rows"] if row.get("failure")}
    assert list(failures) == ["mini-qa-002"]
    assert "the system died twice with this row" in failures["mini-qa-002"]["message"]
    told = finished.stderr.splitlines()
    # One is of stderr, one of stdout: which of two pipes is heard first is nobody's to say.
    assert {"my-system: loading the weights", "my-system: answered mini-qa-001"} <= {*told}
    assert told[0].startswith("my-system: ")
    deaths = [line for line in told if line.startswith("my-system ended with exit code 3;")]
    assert len(deaths) == 2
    assert all("cannot bear this one" in line.partition("Its last lines: ")[2] for line in deaths)
    assert not [line for line in told if "last lines" in line and line.startswith("waiting")]
    [system] = run["config"]["systems"]
    log = Path(system["log"])
    assert log.parent == home / "launched"
    assert log.read_text().count("cannot bear this one") == 2
    # There is nothing left to resume.
    assert list(log.parent.iterdir()) == [log]


def test_how_a_launched_system_ended_is_kept_with_the_run(cbench: Cbench, tmp_path: Path) -> None:
    words = shlex.join([sys.executable, str(SYSTEM), "mayfly", str(tmp_path / "spent")])
    cbench("run", "--dataset", "mini-qa", "-n", "4", "--launch", words, "--wait", "2s")
    run = strict(cbench("show", "last", "--output", "json").stdout)
    assert (run["state"], run["failure"]["reason"]) == ("failed", "SYSTEM_GONE")
    [ended] = [note["text"] for note in run["notes"] if note["code"] == "SYSTEM_ENDED"]
    assert run["failure"]["message"].endswith(ended)
    assert re.search(r"system ended with exit code [34].*Its last lines: .*(so short|spent)", ended)
    # A person reads it once.
    assert cbench("show", "last").stdout.count(ended) == 1


def test_a_resumed_run_launches_its_system_again(
    cbench: Cbench, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "where it was run"
    folder.mkdir()
    (folder / "mine.py").write_text(SYSTEM.read_text())
    launch = shlex.join([sys.executable, "mine.py", "stuck", str(tmp_path)])
    with preloaded.Popen(
        [str(CBENCH), *_RUN[:3], "--launch", launch, "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    ) as process:
        wait_until((tmp_path / "stuck").exists)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.match(r"kept \d rows; resume with: cbench resume 2", stderr.splitlines()[-1])
    assert not _is_running(int((tmp_path / "stuck").read_text()))
    (tmp_path / "released").touch()
    resumed = cbench("resume", "last", "--output", "json")
    assert resumed.returncode == 0, resumed.stderr
    run = strict(resumed.stdout)
    assert (run["completed_rows"], run["failed_rows"]) == (48, 0)


def test_a_system_that_keeps_dying_is_not_started_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_FIRST_PAUSE_S", 0.001)
    said: list[str] = []
    voice = Voice()
    voice.through = said.append
    output = Output("mayfly", tmp_path / "log", voice)
    system = launch.Launched(
        "sh -c 'echo \"cbench|1|tcp|127.0.0.1:1\"; echo so short >&2; kill -9 $$'",
        tmp_path,
        output,
        voice,
    )
    assert system.wait() == "127.0.0.1:1"
    wait_until(lambda: "is not started again" in system.death)
    system.stop()
    assert system.is_given_up
    deaths = [line for line in said if "was killed by signal 9 (SIGKILL)" in line]
    assert len(deaths) == launch.MAX_RESTARTS
    assert system.death.endswith("Its last lines: so short")


def test_a_run_does_not_wait_for_a_system_that_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setenv("CBENCH_HOME", str(tmp_path / "home"))
    died = tmp_path / "died"
    program = tmp_path / "mortal.py"
    program.write_text(
        "import os, pathlib, cbench_client\n"
        "class Mortal:\n"
        "    name = 'mortal'\n"
        "    def process(self, example):\n"
        f"        pathlib.Path({str(died)!r}).touch()\n"
        "        os._exit(9)\n"
        "cbench_client.serve(Mortal())\n"
    )
    first = shlex.join([sys.executable, str(program)])
    command = f"test -e {died} && echo no more >&2 && exit 3; exec {first}"
    words = [*_RUN, "--builtin", "identity", "--launch", shlex.join(["sh", "-c", command])]
    assert main(words) == 1
    *_, why, kept = capsys.readouterr().err.splitlines()
    assert why.startswith("cbench: sh ended with exit code 3, for the 6th time")
    assert why.endswith("Its last lines: no more")
    assert re.fullmatch(r"kept [23] rows; once it is mended: cbench resume \S+", kept)


def test_what_a_system_prints_does_not_flood_the_terminal(tmp_path: Path) -> None:
    said: list[str] = []
    voice = Voice()
    voice.through = said.append
    output = Output("talker", tmp_path / "log", voice)
    with subprocess.Popen(
        ["sh", "-c", "seq 100000; printf 'bar 1\\rbar 2\\r'"], stdout=subprocess.PIPE
    ) as process:
        output.read(process.stdout).join()
    output.close()
    assert said[0] == "talker: 1"
    assert len(said) < 5000
    assert any("all of it is in" in line for line in said)
    assert output.last_words.endswith("100000 / bar 1 / bar 2")
    assert (tmp_path / "log").read_bytes().endswith(b"100000\nbar 1\rbar 2\r")


def test_a_command_that_does_not_exist_is_reported(cbench: Cbench) -> None:
    finished = cbench(*_RUN, "--launch", "no-such-program --flag")
    assert finished.returncode == 2
    assert "cannot launch `no-such-program --flag`" in complaint(finished)


def test_a_distant_daemon_cannot_use_what_is_launched_here(cbench: Cbench) -> None:
    finished = cbench(*_RUN, "--launch", "true", "--server", "daemon.example:50051")
    assert finished.returncode == 2
    assert "cannot reach it" in complaint(finished)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that has ended stays until somebody asks for it.
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
