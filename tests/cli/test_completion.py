"""`cbench completion`: what shells are told, by the function they call and by a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cbench_client import BenchClient
from cbench_server.cli.completion import split_line, suggest
from cbench_server.cli.parser import build_parser
from cbench_server.daemon.embedded import embedded

BIN = Path(sys.executable).parent


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


def test_runs_are_completed_from_the_daemon_that_is_named(
    run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded(home=str(tmp_path / "home")) as target:
        monkeypatch.setenv("CBENCH_HOME", str(tmp_path / "elsewhere"))
        assert suggestions(f"cbench show --server {target} ") == ["last", run_id]


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


def test_fish_completes_live_names(run_id: str) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    program = "cbench completion fish | source; complete -C 'cbench show 20'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.split() == [run_id], done.stderr
