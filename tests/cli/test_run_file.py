"""`cbench run --config`, `cbench config`, `--repeat-last`, `--detach` and `cbench attach`."""

import json
import sys
from pathlib import Path

import pytest

from cbench_client import BenchClient
from cbench_server.spec import RUN_FILE_LABEL
from tests.cli.conftest import Cbench, complaint, strict

FILE = """\
[[systems]]
builtin = "truncate-head"
name = "cut"
options = { ratio = 0.5 }

[[systems]]
name = "lines"
exec = "COMMAND"
folder = "programs"

[[datasets]]
file = "mine.jsonl"
name = "own"
map = { context = "passage" }
max_examples = 2

[run]
labels = { team = "blue" }
"""
PROGRAM = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    context = asked["example"]["context"].split()[0]
    print(json.dumps({"id": asked["id"], "example": {"context": context}}), flush=True)
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A run file in a folder of its own, with the program and the examples it names."""
    folder = tmp_path / "elsewhere"
    (folder / "programs").mkdir(parents=True)
    (folder / "programs" / "first.py").write_text(PROGRAM)
    rows = [{"id": f"{n}", "passage": f"word {n}", "answer": "word"} for n in range(4)]
    (folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "run.toml"
    path.write_text(FILE.replace("COMMAND", f"{sys.executable} first.py"))
    return path


def test_a_file_says_all_that_flags_can_and_flags_stand_over_it(
    cbench: Cbench, written: Path, tmp_path: Path
) -> None:
    done = cbench(
        "run", "-c", written, "--output", "json", "--label", "day=1", "--threshold", "0.4"
    )
    assert done.returncode == 0, done.stderr
    shown = strict(done.stdout)
    spec = shown["spec"]
    assert [row["system"] for row in shown["rows"]] == ["cut", "cut", "lines", "lines"]
    assert spec["systems"][0]["options"] == {"ratio": 0.5}
    assert spec["datasets"][0]["mapping"] == {"context": "passage"}
    assert spec["threshold"] == 0.4
    labels = dict(spec["labels"])
    kept = labels.pop(RUN_FILE_LABEL)
    assert labels == {"team": "blue", "day": "1"}
    assert "first.py" not in json.dumps(spec), "a spec names no command"
    assert 'exec = "COMMAND"' in kept
    assert cbench("runs").stdout.splitlines()[-1].endswith("  day=1, team=blue")

    again = tmp_path / "again.toml"
    again.write_text(cbench("show", "last", "--as-file").stdout)
    repeated = strict(cbench("run", "-c", again, "--output", "json").stdout)["spec"]
    assert _asked(repeated) == _asked(spec)
    last = strict(cbench("run", "--repeat-last", "-n", "1", "--output", "json").stdout)
    assert [row["system"] for row in last["rows"]] == ["cut", "lines"]


def _asked(spec: dict) -> dict:
    """Leave out where a launched system listened, and the record of the file itself."""
    systems = [{**each, "target": "", "log": ""} for each in spec["systems"]]
    return {**spec, "systems": systems, "labels": {**spec["labels"], RUN_FILE_LABEL: ""}}


def test_a_list_of_flags_stands_in_the_place_of_the_list_of_the_file(
    cbench: Cbench, written: Path
) -> None:
    flags = ["--builtin", "identity", "--dataset", "mini-qa", "-n", "1"]
    done = cbench("run", "-c", written, *flags, "--output", "json")
    spec = strict(done.stdout)["spec"]
    assert [each["builtin"] for each in spec["systems"]] == ["identity"]
    assert [(each["name"], each["max_examples"]) for each in spec["datasets"]] == [("mini-qa", 1)]


@pytest.mark.parametrize(("least", "code"), [("0", 0), ("2", 1)])
def test_the_gate_of_a_file_decides_the_exit_code(
    cbench: Cbench, tmp_path: Path, least: str, code: int
) -> None:
    path = tmp_path / "gated.toml"
    path.write_text(
        '[[systems]]\nbuiltin = "identity"\n[[datasets]]\nname = "mini-qa"\nmax_examples = 2\n'
        f'[gate]\npolicies = "score at least {least} as measured"\njunit = "verdicts.xml"\n'
    )
    done = cbench("run", "-c", path)
    assert done.returncode == code, done.stderr
    assert f"score at least {least} as measured" in done.stdout
    assert (tmp_path / "verdicts.xml").read_text().startswith("<?xml")


def test_a_gate_that_cannot_be_read_ends_before_the_run(cbench: Cbench, tmp_path: Path) -> None:
    path = tmp_path / "gated.toml"
    path.write_text(
        '[[systems]]\nbuiltin = "identity"\n[[datasets]]\nname = "mini-qa"\n'
        '[gate]\npolicies = ["f1 very good"]\n'
    )
    done = cbench("run", "-c", path)
    assert done.returncode == 2
    assert 'cannot read the policy "f1 very good"' in complaint(done)
    assert cbench("runs", "--output", "json").stdout.strip() == "[]"


def test_a_memory_run_has_a_file_too(cbench: Cbench, tmp_path: Path) -> None:
    assert cbench("config", "init", "memory.toml", "--memory").returncode == 0
    assert cbench("config", "check", "memory.toml").returncode == 0
    done = cbench("memory", "run", "-c", "memory.toml", "--output", "json", "-n", "1")
    assert done.returncode == 0, done.stderr
    assert strict(done.stdout)["spec"]["query_budget"] == 4000
    refused = cbench("run", "-c", "memory.toml")
    assert "cbench memory run -c memory.toml" in complaint(refused)


def test_the_first_file_works_as_it_is(cbench: Cbench, tmp_path: Path) -> None:
    assert cbench("config", "init").returncode == 0
    assert "is not overwritten" in complaint(cbench("config", "init"))
    assert cbench("config", "check").stdout == "run.toml: good\n"
    shown = cbench("config", "show", "-c", "run.toml", "-n", "3")
    assert "max_examples = 3\n" in shown.stdout
    assert cbench("run", "-c", "run.toml", "-n", "2").returncode == 0


def test_a_check_tells_every_mistake_and_missing_files(cbench: Cbench, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('[run]\nsede = 1\n[limits]\nwait = "x"\n')
    done = cbench("config", "check", "bad.toml")
    assert done.returncode == 2
    assert [line.partition(" ")[0] for line in done.stderr.splitlines()] == [
        "bad.toml:2:",
        "bad.toml:4:",
    ]
    (tmp_path / "none.toml").write_text(
        '[[systems]]\nbuiltin = "identity"\n[[datasets]]\nfile = "none.jsonl"\n'
    )
    done = cbench("config", "check", "none.toml")
    assert done.stderr == "none.toml:4: datasets[0].file is wrong: there is no none.jsonl.\n"


_WRONG = """\
options = { seed = "s", depth = 2 }
[[systems]]
builtin = "truncate-tail"
options = { ratio = "x" }
[[systems]]
builtin = "truncate-head"
options = { ratio = 7 }
[[systems]]
builtin = "random-drop"
[[systems]]
builtin = "truncate-tial"
[[datasets]]
name = "mini-qaa"
map = { context = "a[", answer = "b" }
[[evaluators]]
name = "rouge"
options = { use_stemer = true }
[[metrics]]
name = "pass-rate"
options = { threshold = "high" }
"""
_WRONG_SWEEP = """\
[[systems]]
name = "cut"
builtin = "truncate-tail"
[[datasets]]
name = "mini-qa"
[system_options.cut]
ratoi = 0.3
[sweep]
option = "rate"
values = [0.1, 0.2]
"""
_ELSEWHERE = """\
[[systems]]
launch = "python mine.py"
options = { k = "any" }
[[systems]]
builtin = "my-own"
[[datasets]]
name = "hf:someone/something"
[[evaluators]]
name = "mine"
target = "localhost:1"
options = { strict = true }
[daemon]
imports = ["my_components"]
"""


def test_a_check_knows_the_names_and_options_of_components(cbench: Cbench, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(_WRONG)
    done = cbench("config", "check")
    assert done.returncode == 2
    found = dict(line.split(": ", 1) for line in done.stderr.splitlines())
    assert [*found] == [f"run.toml:{line}" for line in (1, 4, 7, 11, 13, 14, 17, 20)]
    assert 'options.seed is wrong: system "random-drop"' in found["run.toml:1"]
    assert 'option "ratio": "x" is not a number.' in found["run.toml:4"]
    assert "systems[1].options.ratio is wrong: ratio" in found["run.toml:7"]
    assert 'did you mean "truncate-tail"?' in found["run.toml:11"]
    assert 'did you mean "mini-qa"?' in found["run.toml:13"]
    assert 'datasets[0].map.context is wrong: "a[" is not a valid path' in found["run.toml:14"]
    assert 'did you mean "use_stemmer"?' in found["run.toml:17"]
    assert '"high" is not a number' in found["run.toml:20"]
    (tmp_path / "run.toml").write_text(_WRONG_SWEEP)
    lines = cbench("config", "check").stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["run.toml:7", "run.toml:9"]


def test_a_check_says_what_it_cannot_know(cbench: Cbench, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(_ELSEWHERE)
    done = cbench("config", "check")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "run.toml: good",
        "run.toml: not checked: options of systems[0]: python mine.py says which it takes when "
        "the run begins.",
        'run.toml: not checked: systems[1].builtin: "my-own" is not known here; whether '
        "daemon.imports has it, the run will tell.",
        "run.toml: not checked: options of evaluators[0]: localhost:1 says which it takes when "
        "the run begins.",
        "run.toml: not checked: datasets[0]: hf:someone/something is looked up when the run "
        "begins.",
    ]
    (said,) = json.loads(cbench("config", "check", "--json").stdout)
    assert said["mistakes"] == []
    assert len(said["unchecked"]) == 4


def test_a_run_by_rpc_is_given_back_as_a_file(
    cbench: Cbench, daemon_address: str, tmp_path: Path
) -> None:
    spec = {
        "systems": [{"builtin": "truncate-head", "options": {"ratio": 0.25}}],
        "datasets": [{"name": "mini-qa", "max_examples": 2}],
        "group_by": ["id"],
    }
    with BenchClient(daemon_address) as client:
        run_id = client.start(spec)
        for _ in client.watch(run_id):
            pass
        shown = cbench("show", run_id, "--as-file", "--server", daemon_address)
        (tmp_path / "theirs.toml").write_text(shown.stdout)
        flags = ["--detach", "--server", daemon_address]
        left = cbench("run", "-c", "theirs.toml", *flags)
        assert left.returncode == 0, left.stderr
        attached = cbench("attach", left.stdout.strip(), "--server", daemon_address)
        assert attached.returncode == 0, attached.stderr
        assert "truncate-head" in attached.stdout
        theirs = client.get(left.stdout.strip()).spec
        del theirs.labels[RUN_FILE_LABEL]
        assert theirs == client.get(run_id).spec


def test_a_run_is_left_to_a_daemon_only_where_there_is_one(cbench: Cbench) -> None:
    flags = ["--builtin", "identity", "--dataset", "mini-qa", "--detach"]
    assert "Start one with `cbench-server`" in complaint(cbench("run", *flags))
    launched = cbench("run", *flags, "--exec", "cat", "--server", "localhost:1")
    assert "ends with this command" in complaint(launched)
    assert "no run was started from here" in complaint(cbench("run", "--repeat-last"))


def test_one_example_of_a_file_is_tried(cbench: Cbench, written: Path, tmp_path: Path) -> None:
    flags = ["-c", written, "--output", "json"]
    tried = strict(cbench("try", *flags, "--example", "3").stdout)
    assert [(row["system"], row["example_id"]) for row in tried] == [("cut", "3"), ("lines", "3")]
    (tmp_path / "letter.txt").write_text("Dear reader, farewell.")
    tried = strict(cbench("try", *flags, "--text", "letter.txt").stdout)
    assert tried[1]["processed"]["context"] == "Dear"
    assert strict(cbench("runs", "--output", "json").stdout) == []
