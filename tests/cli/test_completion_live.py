"""Completion of names that only running processes know, and by a real zsh on a terminal."""

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_client import BenchClient
from cbench_server.cli import option_names
from cbench_server.cli.completion import split_line, suggest
from cbench_server.cli.parser import build_parser
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.waiting import wait_until, wait_until_listed

BIN = Path(sys.executable).parent
SYSTEM = """\
import sys
from cbench_client import attach, serve

class Mine:
    name = "mine"
    def process(self, example, *, ratio: float = 0.3, keep_titles: bool = False):
        return example

attach(Mine(), sys.argv[2]) if sys.argv[1] == "attach" else serve(Mine())
"""

Start = Callable[..., str]


def suggestions(line: str) -> list[str]:
    return suggest(split_line(line), build_parser)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait as long as a busy machine needs."""
    monkeypatch.setattr(option_names, "PATIENCE_SECONDS", 60.0)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SYSTEM)
    return path


def test_the_options_that_a_served_system_announces_are_completed(
    start: Start, program: Path
) -> None:
    address = start(sys.executable, program, "serve")
    line = f"cbench run --system {address} --option "
    assert suggestions(line) == ["ratio=", "keep_titles=true", "keep_titles=false"]
    assert suggestions(f"cbench run --system {address}/mine --option kee") == [
        "keep_titles=true",
        "keep_titles=false",
    ]
    both = suggestions(f"cbench run --builtin truncate-tail --system {address} --option mi")
    assert both == ["mine.ratio=", "mine.keep_titles=true", "mine.keep_titles=false"]


def test_a_process_that_is_away_suggests_nothing_and_says_nothing() -> None:
    assert suggestions(f"cbench run --system 127.0.0.1:{held_port()} --option ") == []
    assert suggestions(f"cbench run --server 127.0.0.1:{held_port()} --attached ") == []


def test_attached_systems_and_their_options_are_completed(
    daemon_address: str, program: Path
) -> None:
    process = preloaded.Popen([sys.executable, program, "attach", daemon_address])
    try:
        with BenchClient(daemon_address) as client:
            wait_until_listed(client, "mine")
        line = f"cbench run --server {daemon_address} --attached "
        assert suggestions(line) == ["mine"]
        assert suggestions(f"{line}mine --option r") == ["ratio="]
    finally:
        process.terminate()
        process.wait()


def test_built_in_memories_are_completed_in_a_memory_run() -> None:
    assert suggestions("cbench memory run --builtin last") == ["last-n"]
    assert suggestions("cbench memory run --builtin last-n --option ") == ["n="]


def test_zsh_completes_on_tab(tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    typed = tmp_path / "typed"
    # The last key writes down what the line has become.
    (tmp_path / ".zshrc").write_text(
        "autoload -Uz compinit && compinit -u -D\n"
        'eval "$(cbench completion zsh)"\n'
        f'note() {{ print -r -- "$BUFFER|" > {typed} }}\n'
        "zle -N note && bindkey '^X' note\n"
        "print -n ready > ready\n"
    )
    controller, terminal = pty.openpty()
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "TERM": "vt100"}
    with subprocess.Popen(
        ["zsh", "-i"],
        cwd=tmp_path,
        env={**environment, "ZDOTDIR": str(tmp_path)},
        stdin=terminal,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as shell:
        try:
            wait_until((tmp_path / "ready").exists)
            os.write(controller, b"cbench run --builtin ident\t\x18")
            wait_until(lambda: typed.exists() and typed.read_text().endswith("|\n"))
            assert typed.read_text() == "cbench run --builtin identity |\n"
        finally:
            shell.kill()
            os.close(controller)
            os.close(terminal)
