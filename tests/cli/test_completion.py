"""`cbench completion`: what shells are told, by the function they call and by a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from cbench_client import Attachment, BenchClient, Server
from cbench_server.cli import option_names
from cbench_server.cli.completion import split_line, suggest
from cbench_server.cli.parser import build_parser
from cbench_server.daemon.embedded import embedded

BIN = Path(sys.executable).parent
Level = Literal["low", "high"]


def suggestions(line: str) -> list[str]:
    return suggest(split_line(line), build_parser)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("cbench ru", ["run", "runs"]),
        ("cbench runs p", ["prune", "pin"]),
        ("cbench run --builtin tru", ["truncate-head", "truncate-tail"]),
        ("cbench run --builtin=ident", ["--builtin=identity"]),
        ("cbench run --dataset mini-qa --dataset mini-ch", ["mini-choice", "mini-chat"]),
        ("cbench run --evaluator math-e", ["math-equivalence"]),
        ("cbench run --builtin truncate-head --option ", ["ratio="]),
        (
            "cbench run --builtin truncate-head --builtin truncate-tail --option ",
            ["truncate-head.ratio=", "truncate-tail.ratio="],
        ),
        ("cbench runs --state wai", ["waiting"]),
        ("cbench datasets show long-n", ["long-notes"]),
        ("cbench export last --format parq", ["parquet"]),
        ("cbench run --no-such-flag x --quie", ["--quiet"]),
        ('cbench run --launch "python mine', []),
        ("cbench nonsense ", []),
    ],
)
def test_the_end_of_a_line_is_completed(line: str, wanted: list[str]) -> None:
    found = suggestions(line)
    if wanted or line.endswith("mine"):
        assert sorted(found) == sorted(wanted)
    assert len(found) == len(set(found))


def test_a_flag_that_was_given_comes_again_only_if_it_repeats() -> None:
    found = suggestions("cbench run --quiet --dataset mini-qa --")
    assert "--dataset" in found
    assert "--quiet" not in found


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for as long as a busy machine takes to answer."""
    monkeypatch.setattr(option_names, "PATIENCE_SECONDS", 60.0)


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    home = tmp_path / "home"
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [{"name": "mini-qa", "max_examples": 1}],
    }
    with embedded(home=str(home)) as target, BenchClient(target) as client:
        list(client.evaluate(spec))
        (run,) = client.list()
    monkeypatch.setenv("CBENCH_HOME", str(home))
    return run.run_id


def test_runs_are_completed_from_the_store(run_id: str) -> None:
    assert suggestions("cbench show ") == ["last", run_id]
    assert suggestions(f"cbench compare last {run_id[:9]}") == [run_id]


@pytest.mark.usefixtures("patient")
def test_runs_are_completed_from_the_daemon_that_is_named(
    run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded(home=str(tmp_path / "home")) as target:
        monkeypatch.setenv("CBENCH_HOME", str(tmp_path / "elsewhere"))
        assert suggestions(f"cbench show --server {target} ") == ["last", run_id]


class Short:
    """A system with options, served and attached by the tests."""

    name = "short"

    def process(self, example: dict[str, Any], *, ratio: float = 0.5, level: Level = "low") -> Any:
        return example


class Wide(Short):
    name = "wide"

    def process(self, example: dict[str, Any], *, width: int = 3, whole: bool = False) -> Any:
        return example


class Judge:
    name = "strict"

    def score(self, original: Any, processed: Any, *, floor: float = 0.0) -> dict[str, float]:
        return {"strict": floor}


@pytest.mark.usefixtures("patient")
def test_options_of_served_systems_and_evaluators_are_completed() -> None:
    with Server([Short(), Judge()]) as one, Server([Short(), Wide()]) as two:
        line = f"cbench run --system {one.address} "
        assert suggestions(f"{line} --option ") == ["ratio=", "level=low", "level=high"]
        assert suggestions(f"{line} --option=level=h") == ["--option=level=high"]
        assert suggestions(f"{line} --option short.r") == ["short.ratio="]
        assert suggestions(f"{line} --sweep ra") == ["ratio="]
        line = f"cbench run --system={two.address}"
        assert suggestions(f"{line} --option wide.") == [
            "wide.width=",
            "wide.whole=true",
            "wide.whole=false",
        ]
        assert suggestions(f"{line}/wide --option wi") == ["width="]
        line = f"cbench run --builtin identity --evaluator strict@{one.address}"
        assert suggestions(f"{line} --evaluator-option strict.") == ["strict.floor="]
    # Whoever is away by now costs nothing but its own suggestions.
    line = f"cbench run --system {one.address} --builtin truncate-tail --option "
    assert suggestions(line) == ["ratio="]


@pytest.mark.usefixtures("patient")
def test_options_of_attached_systems_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded(home=str(tmp_path)) as daemon, Attachment(Wide(), daemon) as attached:
        attached.wait_attached(60)
        wanted = ["width=", "whole=true", "whole=false"]
        line = f"cbench run --server {daemon} --attached wide --option w"
        assert suggestions(line) == wanted
        monkeypatch.setenv("CBENCH_SERVER", daemon)
        assert suggestions("cbench run --attached wide --option w") == wanted


def test_names_that_a_shell_would_take_for_commands_are_not_offered(tmp_path: Path) -> None:
    """A shell puts a suggestion into the line unquoted, and Enter would run the rest of it."""
    evil = ["mine;touch pwned", "mine$(touch pwned)", "mine`touch pwned`", "mine|sh", "mine >x"]
    systems = [Wide() for _ in evil]
    for system, name in zip(systems, evil, strict=True):
        system.name = name
    harmless = Wide()
    harmless.name = "größe-2.1"
    with (
        embedded(home=str(tmp_path)) as daemon,
        Attachment([*systems, harmless], daemon) as attached,
    ):
        attached.wait_attached(60)
        assert suggestions(f"cbench run --server {daemon} --attached ") == ["größe-2.1"]


def typed_in_bash(line: str) -> list[str]:
    """Return what bash offers for a line, by the function that it calls on Tab."""
    program = f"""
eval "$(cbench completion bash)"
complete -p cbench >/dev/null || exit 3
COMP_LINE={line!r} COMP_POINT={len(line)}
_cbench
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout.split()


def test_bash_completes_names_and_what_comes_after_an_equals_sign(run_id: str) -> None:
    assert typed_in_bash("cbench run --builtin trunc") == ["truncate-head", "truncate-tail"]
    assert typed_in_bash("cbench run --builtin=ident") == ["identity"]
    assert typed_in_bash("cbench show 20") == [run_id]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_is_one_that_the_shell_takes(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = subprocess.run(
        [BIN / "cbench", "completion", shell], capture_output=True, check=True, timeout=100
    ).stdout
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("cbench show 20", None),
        ("cbench run --builtin truncate-head --option ", ["ratio="]),
        ("cbench run --config ", ["run.toml"]),
    ],
    ids=["runs", "options-and-no-files", "files"],
)
def test_fish_completes_live_names_else_files(
    line: str, wanted: list[str] | None, run_id: str, tmp_path: Path
) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "run.toml").touch()
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    program = f"cbench completion fish | source; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.split() == (wanted or [run_id]), done.stderr
