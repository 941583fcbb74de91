"""Code execution: does the program in the response pass its tests?"""

import asyncio
import logging
import math
from collections.abc import Sequence
from typing import Any

from cbench_server.errors import EvaluatorBroken, InvalidInput
from cbench_server.evaluators.inputs import ScoreInfo, answer_text
from cbench_server.limits import MAX_PROGRAM
from cbench_server.sandbox.client import Job, SandboxUnavailable, Verdict, shared_sandbox
from cbench_server.sandbox.limits import DISK_MB, MAX_TIMEOUT_S, MEMORY_MB
from cbench_server.sandbox.tiers import POLICIES
from cbench_server.scoring.assessment import is_context_only
from cbench_server.types import Assessment, Example, Placement, Scores

_log = logging.getLogger(__name__)

_FIELDS = ("test", "test_list", "entry_point", "test_setup_code", "test_imports")
_MAX_AT_ONCE = 4
_KS = (1, 5, 10)


class CodeExecution:
    """Gives `pass_at_1`: 1.0 if the response passes every test, else 0.0.

    With several `responses`, the share that pass, and `pass_at_5` and
    `pass_at_10` where there are that many. `sandbox` is `strict`,
    `best-effort` or `off`.
    """

    name = "code-execution"
    version = "1"
    description = "Whether the program in the response passes its tests, run in a sandbox."
    runs_programs = True
    placement: Placement = "io"
    reads = "response"
    # One of `test` and `test_list`, which this cannot say.
    required_fields: tuple[str, ...] = ()
    score_infos = (
        ScoreInfo("pass_at_1", "1.0 if the program passes all its tests."),
        ScoreInfo("pass_at_5", "Chance that one of five responses passes; needs `responses`."),
        ScoreInfo("pass_at_10", "Chance that one of ten responses passes; needs `responses`."),
    )

    def __init__(
        self, timeout: float = 10.0, *, sandbox: str = "strict", strip_thinking: bool = True
    ) -> None:
        if sandbox not in POLICIES:
            known = ", ".join(POLICIES)
            raise InvalidInput(f'no sandbox policy "{sandbox}"; there are: {known}')
        if not 0 < timeout <= MAX_TIMEOUT_S:
            raise InvalidInput(
                f"a timeout of {timeout!r} seconds; it should be above 0, and at most "
                f"{MAX_TIMEOUT_S:g}"
            )
        self.options = {"timeout": timeout, "sandbox": sandbox, "strip_thinking": strip_thinking}
        self._timeout = float(timeout)
        self._sandbox = shared_sandbox(sandbox)
        self._strip_thinking = strip_thinking

    def score(self, original: Example, processed: Example) -> Scores:
        """Run the response, or each of `responses`, and wait.

        Where the sandbox itself fails there is no score, and a warning in the log.
        """
        if not _applies(original) or is_context_only(processed):
            return {}
        try:
            verdicts = [self._run(original, response) for response in self._responses(processed)]
        except SandboxUnavailable as error:
            _log.warning("code-execution gives no score: %s", error)
            return {}
        return _scores(verdicts)

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Do as `score` does without blocking, with details; raises EvaluatorBroken."""
        if not _applies(original):
            return Assessment({})
        permits = asyncio.Semaphore(_MAX_AT_ONCE)

        async def run(response: str) -> Verdict:
            job = job_of(original, response)
            if isinstance(job, Verdict):
                return job
            async with permits:
                return await self._sandbox.run_async(job, self._timeout)

        try:
            verdicts = await asyncio.gather(*map(run, self._responses(processed)))
        except SandboxUnavailable as error:
            raise EvaluatorBroken(str(error)) from error
        limits = {"timeout_s": self._timeout, "memory_mb": MEMORY_MB, "disk_mb": DISK_MB}
        runs = [_details(verdict) for verdict in verdicts]
        details = runs[0] if len(runs) == 1 else {"runs": runs}
        return Assessment(_scores(verdicts), {**details, "limits": limits})

    def _run(self, original: Example, response: str) -> Verdict:
        job = job_of(original, response)
        if isinstance(job, Verdict):
            return job
        return self._sandbox.run(job, self._timeout)

    def _responses(self, processed: Example) -> list[str]:
        many = processed.get("responses")
        found = many if isinstance(many, list) and many else [processed.get("response")]
        return [answer_text(response, strip=self._strip_thinking) for response in found]


def job_of(original: Example, response: str) -> Job | Verdict:
    """Return what is to be run, or the verdict where nothing is."""
    if not response.strip():
        return Verdict(False, "empty", "the response is empty")
    if len(response) > MAX_PROGRAM:
        return Verdict(False, "too_long", f"the response has {len(response):,} characters")
    imports = tuple(_texts(original.get("test_imports")))
    setup = _text(original.get("test_setup_code"))
    if test := _text(original.get("test")):
        prompt, entry_point = _text(original.get("context")), _text(original.get("entry_point"))
        return Job(response, (test,), prompt, entry_point, imports, setup)
    if tests := tuple(_texts(original.get("test_list"))):
        return Job(response, tests, imports=imports, setup=setup)
    return Verdict(False, "no_tests", "the example has no tests")


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Estimate, without bias, the chance that at least one of k samples passes."""
    if samples - passed < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / n for n in range(samples - passed + 1, samples + 1))


def _scores(verdicts: Sequence[Verdict]) -> Scores:
    passed = sum(verdict.passed for verdict in verdicts)
    return {f"pass_at_{k}": pass_at_k(len(verdicts), passed, k) for k in _KS if k <= len(verdicts)}


def _details(verdict: Verdict) -> dict[str, Any]:
    details = {
        "passed": verdict.passed,
        "reason": verdict.reason,
        "message": verdict.message,
        "seconds": round(verdict.seconds, 4),
        "output": verdict.output,
    }
    if tier := verdict.tier:
        details |= {
            "integrity": verdict.integrity if tier.is_split_sound else "nominal",
            "sandbox_tier": tier.name,
            "landlock_abi": verdict.landlock_abi,
            "network": tier.network,
            "filesystem": tier.filesystem,
        }
    return details


def _applies(original: Example) -> bool:
    return any(original.get(field) is not None for field in _FIELDS)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _texts(value: Any) -> list[str]:
    found = value if isinstance(value, list | tuple) else [value]
    return [str(each) for each in found if each is not None and str(each).strip()]
