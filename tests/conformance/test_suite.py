"""`cbench conformance` as a person uses it: what passes, what fails, what is said about it."""

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cbench_server.conformance.cases import asked_of, load_cases
from tests.conformance.conftest import FAULTY, LEAST, PROGRAM, Conformance, Finished
from tests.conftest import Start

KNOWN_FAILING = PROGRAM.parent / "known-failing.txt"
PYTHON = sys.executable
ONE_CASE = "system/unary/values/int64-max"


def statuses(finished: Finished) -> dict[str, str]:
    document: dict[str, Any] = json.loads(finished.stdout)
    return {case["name"]: case["status"] for case in document["cases"]}


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_the_python_sdk_passes_every_case(conformance_here: Conformance, tmp_path: Path) -> None:
    finished = conformance_here(
        "--known-failing",
        KNOWN_FAILING,
        "--output",
        "json",
        "--junit",
        tmp_path / "junit.xml",
        "--",
        PYTHON,
        PROGRAM,
    )
    document = json.loads(finished.stdout)
    bad = {case["name"]: case["why"] for case in document["cases"] if case["status"] != "passed"}
    assert (bad, finished.returncode) == ({}, 0)
    assert document["sdk"] == "cbench-python/0.1.0"
    assert statuses(finished).keys() == {case.name for case in asked_of("sdk", load_cases())}
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("tests") == str(len(document["cases"]))
    assert suite.get("failures") == suite.get("skipped") == "0"


def test_nothing_is_known_to_fail_in_the_python_sdk() -> None:
    assert KNOWN_FAILING.read_text() == ""


def test_a_system_without_any_sdk_gets_the_cases_that_apply_to_it(conformance: Conformance) -> None:
    finished = conformance("--output", "json", "--", PYTHON, LEAST)
    outcome = statuses(finished)
    assert finished.returncode == 0, finished.stdout
    passed = {name for name, status in outcome.items() if status == "passed"}
    assert {"system/describe/valid", "system/unary/names/unknown", "server/restart/own"} <= passed
    assert outcome["system/stream/answers"] == "skipped"
    assert set(outcome.values()) == {"passed", "skipped"}


def test_what_does_not_apply_is_counted_with_its_reason(conformance: Conformance) -> None:
    finished = conformance("--", PYTHON, LEAST)
    assert "not applicable: needs the conformance program" in finished.stdout
    assert "not applicable: no memory is served" in finished.stdout


def test_a_running_process_is_checked_as_far_as_it_need_not_be_started(
    conformance: Conformance, start: Start
) -> None:
    target = start(PYTHON, PROGRAM, "--token", "s3cret")
    finished = conformance(
        "--system",
        target,
        "--evaluator",
        target,
        "--token",
        "s3cret",
        "--output",
        "json",
        "--only",
        "*/unary/names/*",
        "--only",
        "attach/hello",
        "--only",
        "server/health/own",
    )
    outcome = statuses(finished)
    assert finished.returncode == 0, finished.stdout
    assert outcome["system/unary/names/unknown"] == "passed"
    assert outcome["evaluator/unary/names/unknown"] == "passed"
    assert outcome["server/health/own"] == "passed"
    assert outcome["attach/hello/complete"] == "skipped"
    assert not any(name.startswith("memory/") for name in outcome)


def test_a_failed_case_is_named_with_what_was_wrong(
    conformance: Conformance, tmp_path: Path
) -> None:
    finished = conformance(
        "--only",
        ONE_CASE,
        "--junit",
        tmp_path / "junit.xml",
        "--",
        PYTHON,
        FAULTY,
        "systems-lie",
    )
    assert finished.returncode == 1
    assert f"FAILED  {ONE_CASE}: step 1 (process): fields" in finished.stdout
    failure = ElementTree.parse(tmp_path / "junit.xml").getroot().find("testcase/failure")
    assert failure is not None
    assert "fields" in (failure.get("message") or "")


def test_a_case_known_to_fail_may_fail(conformance: Conformance, tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text(f"# a list\n{ONE_CASE}  # it lies\n\n")
    finished = conformance(
        "--only",
        ONE_CASE,
        "--known-failing",
        "known.txt",
        "--output",
        "json",
        "--",
        PYTHON,
        FAULTY,
        "systems-lie",
    )
    assert (statuses(finished), finished.returncode) == ({ONE_CASE: "known"}, 0)


def test_a_case_known_to_fail_that_passes_fails_the_run(
    conformance: Conformance, tmp_path: Path
) -> None:
    (tmp_path / "known.txt").write_text(f"{ONE_CASE}\n")
    finished = conformance(
        "--only",
        ONE_CASE,
        "--known-failing",
        "known.txt",
        "--",
        PYTHON,
        PROGRAM,
    )
    assert finished.returncode == 1
    assert f"FAILED  {ONE_CASE}: passes, and is listed as failing" in finished.stdout


def test_cases_are_listed_without_anything_to_check(conformance: Conformance) -> None:
    finished = conformance("--list", "--output", "json", "--only", "memory/unary/duplicate")
    names = [case["name"] for case in json.loads(finished.stdout)]
    assert "memory/unary/duplicate/until-reset" in names
    assert all(name.startswith("memory/unary/duplicate/") for name in names)
    assert finished.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ((), "nothing to check. Pass --system HOST:PORT", 2),
        (("--system", "127.0.0.1:1", "--", "true"), "not both", 2),
        (("--only", "system/nothing"), 'of the profile sdk matches "system/nothing"', 2),
        (("--profile", "bear"), 'no --profile "bear". Did you mean "bare"?', 2),
        (("--known-failing", "list.txt", "--", "true"), "Did you mean", 2),
        (("--known-failing", "absent.txt", "--", "true"), "absent.txt", 2),
        (("--", "no-such-program"), "cannot start no-such-program", 1),
        (
            ("--", PYTHON, "-c", "print('hello')"),
            'said "hello" and ended before the line',
            1,
        ),
        (("--", PYTHON, "-c", "raise SystemExit('broken')"), "broken", 1),
        (("--system", "127.0.0.1:1"), "127.0.0.1:1 serves no system", 1),
    ],
    ids=[
        "nothing",
        "both",
        "pattern",
        "unknown-profile",
        "unknown-case",
        "no-list",
        "no-program",
        "no-handshake",
        "ended",
        "nobody-there",
    ],
)
def test_a_mistake_gets_one_clear_line(
    conformance: Conformance,
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
    code: int,
) -> None:
    (tmp_path / "list.txt").write_text(ONE_CASE.replace("max", "maxx"))
    finished = conformance(*arguments)
    assert finished.returncode == code
    assert message in finished.stderr
    assert len(finished.stderr.strip().splitlines()) == 1
