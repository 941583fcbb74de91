"""`make demo` and `make demo-polyglot` show what they promise, and clean up, however they end."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from cbench_server.datasets import RECORDS
from cbench_server.evaluators import EVALUATORS
from tests.fixtures.sdks import LONG_SECONDS, RUST

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))
import demo  # noqa: E402 - scripts are no package
import demo_model  # noqa: E402
from example_systems import (  # noqa: E402
    COMPILED,
    WITHOUT_COMPILER,
    ExampleSystem,
    NotBuilt,
    build,
)

DEMO = [sys.executable, ROOT / "scripts" / "demo.py"]
MARK = "DEMO_TEST_MARK"


def marked_processes(mark: str) -> list[str]:
    """Return the command lines of living processes that have inherited the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # It has ended, or is somebody else's.
    return [line for line in found if line]


def test_the_demo_uses_every_evaluator_that_needs_no_model() -> None:
    records = {record.name: record for record in RECORDS}
    used = {e for name in (demo.RETRIEVAL, *demo.TASKS) for e in records[name].evaluators}
    without_model = {name for name, kind in EVALUATORS.items() if not hasattr(kind, "asks_model")}
    embedded = {
        name for record in RECORDS if record.family == "embedded" for name in record.evaluators
    }
    # A question without an answer is asked in memory runs only.
    assert used == (without_model & embedded) - {"abstention"}


def test_a_language_without_its_toolchain_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    built = list(demo.buildable((*WITHOUT_COMPILER, *COMPILED), tmp_path))
    assert {system.language for system in built} == {"Python"}
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if " is skipped: " in line] == [
        "Node is skipped: node is not installed",
        "Go is skipped: go is not installed",
        "Rust is skipped: cargo is not installed",
    ]


def test_the_readme_shows_what_the_demonstration_with_a_model_printed() -> None:
    _, _, rest = (ROOT / "README.md").read_text().partition(demo_model.START)
    block, _, _ = rest.partition(demo_model.END)
    table = block.partition("\n\n")[0].splitlines()[4:]
    leaders = ("extractive", "embedding-retriever")
    cuts = ("truncate-tail", "truncate-head", "random-drop")
    controls = {f"{cut}@{leader}" for leader in leaders for cut in cuts}
    assert {line.split()[0] for line in table} == {*leaders, "identity", *controls}
    # It stands there because the whole context beats every cut, by what the model finds likely.
    better = {line.split()[4] for line in block.splitlines() if line.startswith("identity is bett")}
    assert better == controls


def test_a_build_that_fails_says_which_command_and_where_its_messages_are(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    command = (sys.executable, "-c", "import sys; sys.exit('no registry')")
    system = ExampleSystem("broken", "Node", (), folder=tmp_path, build=(command,))
    with pytest.raises(NotBuilt, match=rf"failed in {tmp_path}; {log} says why"):
        build(system, log, print)
    assert log.read_text() == "no registry\n"


@pytest.mark.slow
@pytest.mark.timeout(LONG_SECONDS)
def test_the_polyglot_demo_puts_four_languages_on_one_front(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--polyglot", "--folder", tmp_path / "demo"],
        # It finds what the other tests have built.
        env={**os.environ, **RUST.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    start = lines.index("Quality against context tokens; front 1 is the Pareto front")
    front = [line.split() for line in lines[start + 2 : lines.index("", start)]]
    skipped = {line.split()[0] for line in done.stderr.splitlines() if " is skipped: " in line}
    assert {language for _, _, language, *_ in front} == (
        {"Python", "Node", "Go", "Rust", "(control)"} - skipped
    )
    assert front[0][0] == "1"
    scores = {name: float(score) for _, name, _, score, _ in front}
    assert min(scores[each.name] for each in WITHOUT_COMPILER if each.name in scores) > 0.5
    # Each is beside cuts to its own length, which the table has and the front leaves out.
    cuts = {words[0]: float(words[1]) for line in lines if "@" in (words := [*line.split(), ""])[0]}
    assert {name.partition("@")[2] for name in cuts} == scores.keys() - {"identity"}
    assert max(cuts.values()) < 0.5
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    assert f"report is {tmp_path / 'demo'}/report.html" in done.stderr
    if skipped:
        pytest.skip(f"{', '.join(sorted(skipped))} took no part, without toolchain")


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found through /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_demo_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    mark = str(uuid.uuid4())
    with subprocess.Popen(
        [*DEMO, "--folder", tmp_path / "demo"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("a daemon listens on ")
        assert any("cbench-server" in line for line in marked_processes(mark))
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # A terminal sends it to all in the foreground.
        else:
            process.send_signal(number)
        process.stderr.read()
    assert process.returncode != 0
    assert marked_processes(mark) == []
