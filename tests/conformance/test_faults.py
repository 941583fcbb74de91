"""No case passes whatever is done: each fails on a program with the fault it is there to find."""

import asyncio
import sys
from collections import defaultdict

import pytest

from cbench_server.conformance.cases import Case, load_cases
from cbench_server.conformance.runner import Result, run_cases
from cbench_server.conformance.subject import Subject
from tests.conformance.conftest import FAULTY
from tests.conformance.fault_table import TABLE, fault_for
from tests.fixtures import preloaded

# Many of them fail by waiting in vain, so this is most of what the test takes.
_TIMEOUT_S = 5.0
# Its case waits longer than that for nothing to happen, and must not fail by waiting.
_SLOW_TO_SHOW = "any-authority-is-trusted"
_LONG_TIMEOUT_S = 60.0
_PROGRAMS_AT_ONCE = 6


def _by_fault() -> dict[str | None, list[Case]]:
    by_fault: defaultdict[str | None, list[Case]] = defaultdict(list)
    for case in load_cases():
        by_fault[fault_for(case.name)].append(case)
    return by_fault


def test_every_case_has_a_fault_and_every_fault_a_case() -> None:
    by_fault = _by_fault()
    assert [case.name for case in by_fault.pop(None, [])] == []
    assert by_fault.keys() == TABLE.keys()


@pytest.mark.timeout(400)
@pytest.mark.slow
async def test_every_case_fails_under_its_fault() -> None:
    places = asyncio.Semaphore(_PROGRAMS_AT_ONCE)

    async def under(fault: str, cases: list[Case]) -> list[Result]:
        async with places, Subject(command=[sys.executable, str(FAULTY), fault]) as subject:
            timeout = _LONG_TIMEOUT_S if fault == _SLOW_TO_SHOW else _TIMEOUT_S
            return await run_cases(subject, cases, timeout_s=timeout, side_by_side=32)

    by_fault = {fault: cases for fault, cases in _by_fault().items() if fault is not None}
    with preloaded.in_asyncio():
        results = await asyncio.gather(*(under(fault, cases) for fault, cases in by_fault.items()))
    survivors = {
        result.case.name: f"{result.status} under {fault}"
        for fault, group in zip(by_fault, results, strict=True)
        for result in group
        if result.status != "failed"
    }
    assert survivors == {}
    shown = dict(zip(by_fault, results, strict=True))[_SLOW_TO_SHOW]
    assert all("it attached" in result.why for result in shown)
