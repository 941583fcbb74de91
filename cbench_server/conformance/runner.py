"""Runner of cases: several at once where that is harmless, each with a time limit."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import grpc.aio

from cbench_server.conformance.case_run import CaseRun
from cbench_server.conformance.cases import BadCase, Case
from cbench_server.conformance.outcomes import Broken
from cbench_server.conformance.program import ProgramFailed
from cbench_server.conformance.steps import KEYS, OPERATIONS
from cbench_server.conformance.subject import Subject
from cbench_server.conformance.values import partly

Status = Literal["passed", "failed", "known", "surprise", "skipped"]

_POLL_S = 0.02
_LIMITED = "conformance-limited"


@dataclass(frozen=True)
class Result:
    """The result of a case. `why` says what is wrong, or why it was not run."""

    case: Case
    status: Status
    why: str = ""
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Whether it makes the whole run fail."""
        return self.status in ("failed", "surprise")


def check_steps(case: Case) -> None:
    """Raise `BadCase` for a step that no operation understands."""
    for step in case.steps:
        word = step.get("do", "")
        if word not in OPERATIONS:
            raise BadCase(f'{case.name}: no operation "{word}"')
        if unknown := step.keys() - KEYS[word]:
            raise BadCase(f"{case.name}: {word} takes no {', '.join(sorted(unknown))}")
        if word == "burst":
            call = step["call"]
            if unknown := call.keys() - KEYS[call["do"]]:
                raise BadCase(f"{case.name}: {call['do']} takes no {', '.join(sorted(unknown))}")


async def run_cases(
    subject: Subject,
    cases: Iterable[Case],
    *,
    known_failing: frozenset[str] = frozenset(),
    timeout_s: float = 30.0,
    side_by_side: int = 8,
    on_result: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run cases and return their results, sorted by name."""
    runner = _Runner(subject, known_failing, timeout_s, side_by_side, on_result)
    cases = list(cases)
    if any("openssl" in case.needs and not subject.lacks(case) for case in cases):
        # Making keys takes a while, which should not count against the first case.
        await subject.certificates()
    results = await asyncio.gather(*(runner.run(case) for case in cases if not case.alone))
    # Those that move a lot of memory come last, one after the other.
    results += [await runner.run(case) for case in cases if case.alone]
    return sorted(results, key=lambda result: result.case.name)


class _Runner:
    def __init__(
        self,
        subject: Subject,
        known_failing: frozenset[str],
        timeout_s: float,
        side_by_side: int,
        on_result: Callable[[Result], None],
    ) -> None:
        self._subject = subject
        self._known = known_failing
        self._timeout_s = timeout_s
        self._on_result = on_result
        self._places = asyncio.Semaphore(side_by_side)
        # Some cases are about its limit, which two at once would share.
        self._limited = asyncio.Lock()

    async def run(self, case: Case) -> Result:
        if why := self._subject.lacks(case):
            result = Result(case, "skipped", why)
        elif _LIMITED in str(case.steps):
            async with self._limited, self._places:
                result = await self._run_case(case)
        else:
            async with self._places:
                result = await self._run_case(case)
        self._on_result(result)
        return result

    async def _run_case(self, case: Case) -> Result:
        began = time.monotonic()
        why = await trouble_with(self._subject, case, self._timeout_s)
        seconds = time.monotonic() - began
        if case.name in self._known:
            if why:
                return Result(case, "known", why, seconds)
            return Result(case, "surprise", "passes, and is listed as failing", seconds)
        return Result(case, "failed" if why else "passed", why, seconds)


async def trouble_with(subject: Subject, case: Case, timeout_s: float) -> str:
    """Run one case; return what is wrong, or an empty text."""
    run, word = CaseRun(subject, case), ""
    try:
        async with asyncio.timeout(timeout_s), run:
            for number, step in enumerate(case.steps, 1):
                word = f"step {number} ({step['do']})"
                if wrong := await _step(run, step):
                    return f"{word}: {wrong}"
    except TimeoutError:
        return f"{word}: no end within {timeout_s:g} s{run.complaint}{_last_words(run)}"
    except (Broken, ProgramFailed) as error:
        return f"{word}: {error}"
    except grpc.aio.AioRpcError as error:
        return f"{word}: {error.code().name}: {error.details()}"
    except asyncio.InvalidStateError:
        return f"{word}: the stream is over"
    return ""


def _last_words(run: CaseRun) -> str:
    words = run.program.stderr.strip()[-300:] if run.program is not None else ""
    return f"; its stderr ends: {words}" if words else ""


async def _step(run: CaseRun, step: Mapping[str, Any]) -> str | None:
    is_repeated = "eventually" in step
    ready = await run.read({k: v for k, v in step.items() if k not in ("expect", "eventually")})
    wanted = step.get("eventually", step.get("expect", {}))
    expected = {"reason": "", **(await run.read(wanted))}
    while True:
        facts = await OPERATIONS[step["do"]](run, ready)
        wrong = partly(expected, {"reason": "", **(facts or {})})
        if not is_repeated or wrong is None:
            return wrong
        run.complaint = f"; {wrong}"
        await asyncio.sleep(_POLL_S)
