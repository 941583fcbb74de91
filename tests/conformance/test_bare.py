"""The profile `bare`: what a process without an SDK is asked, and what it is not."""

import json
import re
import sys

from cbench_server.conformance.cases import asked_of, load_cases
from tests.conformance.conftest import LEAST, PROGRAM, ROOT, Conformance

PYTHON = sys.executable
BARE = asked_of("bare", load_cases())
PAGE = ROOT / "docs" / "any-language.md"

# A stock server in the ways that an SDK's is not: it talks, and a signal ends it as it would
# end any program.
_TALKATIVE = """
import os, signal, sys
print("loading the model", flush=True)
signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.path.insert(0, {folder!r})
import least
least.signal.signal = lambda *_: None
least.main()
"""


def test_only_what_the_page_says_is_asked() -> None:
    shown = re.findall(r"^\| `(\S+)` \| (.+) \|$", PAGE.read_text(), re.M)
    assert [(case.name, case.says) for case in BARE] == [
        (name, says) for name, says in shown if "/bare/" in name
    ]


def test_no_bare_case_needs_what_only_an_sdk_has() -> None:
    assert {need for case in BARE for need in case.needs} == {"command", "health", "stream"}
    told = str([case.steps for case in BARE])
    for word in ("retryable", "stack_trace", "pushback_ms", "is_told", "sdk", "deadline"):
        assert word not in told


def test_a_process_that_talks_and_dies_of_signals_passes(conformance: Conformance) -> None:
    program = _TALKATIVE.format(folder=str(LEAST.parent))
    finished = conformance("--profile", "bare", "--output", "json", "--", PYTHON, "-c", program)
    document = json.loads(finished.stdout)
    assert finished.returncode == 0, finished.stdout
    assert document["counts"]["passed"] == 8
    strict = conformance("--", PYTHON, "-c", program)
    assert strict.returncode == 1
    assert "server/drain/sigterm-ends-it: step 3 (exit): exit_code is -15, not 0" in strict.stdout
    assert strict.stdout.endswith(
        "Built without an SDK? --profile bare asks what a gRPC library alone can do.\n"
    )


def test_the_program_of_an_sdk_passes_too(conformance_here: Conformance) -> None:
    finished = conformance_here("--profile", "bare", "--output", "json", "--", PYTHON, PROGRAM)
    document = json.loads(finished.stdout)
    assert (document["counts"], finished.returncode) == ({"passed": len(BARE)}, 0)


def test_the_cases_of_a_profile_are_listed(conformance: Conformance) -> None:
    finished = conformance("--profile", "bare", "--list", "--output", "json")
    assert [case["name"] for case in json.loads(finished.stdout)] == [case.name for case in BARE]
