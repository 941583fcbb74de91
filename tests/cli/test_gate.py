"""`cbench gate`: policies in, exit code, text and JUnit out."""

from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Cbench, complaint, strict


@pytest.fixture
def cbench(cbench: Cbench, daemon_address: str) -> Cbench:
    """`cbench` with a daemon that stays: quicker than one for each command."""
    return partial(cbench, CBENCH_SERVER=daemon_address)


@pytest.fixture
def run(cbench: Cbench) -> str:
    """A run of a system that keeps everything and one that keeps half."""
    flags = ("--builtin", "identity", "--builtin", "truncate-head", "--output", "json", "--quiet")
    finished = cbench("run", "--dataset", "mini-qa", *flags)
    assert finished.returncode == 0, finished.stderr
    return str(strict(finished.stdout)["run_id"])


def test_a_gate_opens_only_if_every_policy_holds(cbench: Cbench, run: str, tmp_path: Path) -> None:
    gate = partial(cbench, "gate", run, "--system", "identity")
    held = gate("--policy", "answer_retained at least 0.8")
    assert held.returncode == 0, held.stderr
    assert "passed: answer_retained at least 0.8\n" in held.stdout
    assert held.stdout.endswith("identity: passes, 1 of 1 policies hold\n")

    file = tmp_path / "gate.toml"
    file.write_text('policies = ["failures at most 50%", "context compression at least 10%"]')
    junit = tmp_path / "gate.xml"
    broken = gate("--policy-file", file, "--junit", junit, "--output", "json")
    assert broken.returncode == 1
    found = {each["policy"]: each["verdict"] for each in strict(broken.stdout)}
    assert found == {
        "failures at most 50%": "passed",
        "context compression at least 10%": "failed",
    }
    suite = ElementTree.fromstring(junit.read_text())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_a_run_is_held_against_a_baseline(cbench: Cbench, run: str) -> None:
    policy = ("--policy", "score not worse than baseline by more than 1 point")
    against = ("--system", "truncate-head", "--baseline-system", "identity")
    worse = cbench("gate", run, *against, *policy)
    assert worse.returncode == 1
    assert worse.stdout.startswith("failed: score not worse than baseline")
    assert "the interval's lower end must be at least -1.0 points" in worse.stdout

    again = cbench("run", "--dataset", "mini-qa", "--builtin", "identity", "--output", "json")
    second = str(strict(again.stdout)["run_id"])
    unchanged = cbench("gate", second, "--baseline", run, *policy, "--output", "json")
    [found] = strict(unchanged.stdout)
    assert found["value"] == 0.0
    # Forty examples that all agree still leave room for a difference of two points or more.
    assert found["verdict"] == "not shown"
    assert unchanged.returncode == 1


def test_what_cannot_be_checked_is_said_in_one_line(cbench: Cbench, run: str) -> None:
    only = ("--system", "identity")
    cases = {
        (*only,): "nothing to check: pass --policy",
        (*only, "--policy", "f1 good"): 'cannot read the policy "f1 good"',
        ("--policy", "score at least 0"): "Say which one with --system.",
        (*only, "--policy", "score better than baseline"): "name one with --baseline",
        (*only, "--policy", "f7 at least 0"): 'no row has "f7"',
        (*only, "--policy-file", "absent.txt"): "cannot read absent.txt: No such file",
        (*only, "--baseline", run, "--policy", "score at least 0"): "the run itself",
    }
    for words, said in cases.items():
        finished = cbench("gate", run, *words)
        assert finished.returncode == 2, words
        assert said in complaint(finished), words


def test_junit_is_written_also_where_a_policy_cannot_be_measured(
    cbench: Cbench, run: str, tmp_path: Path
) -> None:
    report = tmp_path / "gate.xml"
    finished = cbench(
        *("gate", run, "--system", "identity", "--junit", report),
        *("--policy", "f7 at least 0", "--policy", "failures at most 0"),
    )
    assert finished.returncode == 2
    assert 'no row has "f7"' in complaint(finished)
    assert "not measured: f7 at least 0" in finished.stdout
    assert "passed: failures at most 0" in finished.stdout
    suite = ElementTree.fromstring(report.read_bytes())
    suite = suite if suite.tag == "testsuite" else suite[0]
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("2", "1", "0")
