"""The evaluator's end of the sandbox: one zygote per process, any number of jobs at a time."""

import asyncio
import atexit
import contextlib
import functools
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbench_server.sandbox.tiers import POLICIES, Tier
from cbench_server.sandbox.wire import Broken, read_all, receive
from cbench_server.sandbox.zygote import REQUEST

_log = logging.getLogger(__name__)

_LAUNCH = Path(__file__).with_name("launch.py")
_START_S = 20.0
# A job may have to wait for others; once it runs, the zygote ends it at its timeout.
_QUEUE_S = 300.0
_GRACE_S = 2.0
_MAX_OUTPUT = 64 << 10
_MAX_VERDICT = 64 << 10


class SandboxUnavailable(Exception):
    """No candidate can be run, or one was lost and did not cause it."""


class _Lost(Exception):
    """The zygote ended, or does not answer."""


@dataclass(frozen=True, slots=True)
class Job:
    """A response and what it is tested with."""

    response: str
    tests: tuple[str, ...]
    prompt: str = ""
    entry_point: str = ""
    imports: tuple[str, ...] = ()
    setup: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a job."""

    passed: bool
    reason: str
    """Why it did not pass; empty if it did."""
    message: str = ""
    integrity: str = "split"
    seconds: float = 0.0
    output: str = ""
    """The beginning of what the program printed."""
    tier: Tier | None = None
    """How it was locked in; None if it was not run."""
    landlock_abi: int = 0


@dataclass(eq=False)
class _Process:
    """A running zygote."""

    popen: subprocess.Popen[bytes]
    control: socket.socket
    tier: Tier
    landlock_abi: int
    owner: int = field(default_factory=os.getpid)

    def end(self, patience: float = 0.0) -> None:
        """End the zygote: it has so many seconds to end what it runs, then it is killed."""
        self.control.close()
        try:
            self.popen.wait(patience)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class Sandbox:
    """Runs jobs in the first of the tiers that works on this machine.

    Safe to use from several threads. The zygote is started at first use, is
    replaced if it dies, and ends with this process.
    """

    def __init__(self, tiers: Sequence[Tier]) -> None:
        self._tiers = tiers
        self._process: _Process | None = None
        self._lock = threading.Lock()

    def run(self, job: Job, timeout: float) -> Verdict:
        """Run a job and wait; raises SandboxUnavailable if our side fails twice."""
        try:
            return self._run(job, timeout)
        except _Lost as lost:
            _log.warning("the sandbox was lost: %s; trying once more", lost)
        try:
            return self._run(job, timeout)
        except _Lost as lost:
            raise SandboxUnavailable(f"the sandbox was lost twice: {lost}") from lost

    async def run_async(self, job: Job, timeout: float) -> Verdict:
        """Do as `run` does, without a thread that waits."""
        try:
            return await self._run_async(job, timeout)
        except _Lost as lost:
            _log.warning("the sandbox was lost: %s; trying once more", lost)
        try:
            return await self._run_async(job, timeout)
        except _Lost as lost:
            raise SandboxUnavailable(f"the sandbox was lost twice: {lost}") from lost

    def close(self) -> None:
        """End the zygote and all it runs; the next job starts another."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.owner == os.getpid():
            process.end(_GRACE_S)

    def _run(self, job: Job, timeout: float) -> Verdict:
        process = self._running()
        try:
            with _Submission(process, job, timeout) as submission:
                for patience in (_QUEUE_S, timeout + _GRACE_S):
                    submission.reply.settimeout(patience)
                    with submission.turn():
                        said = submission.reply.recv(4096)
                    if submission.hear(said):
                        break
                return submission.verdict()
        except (OSError, Broken) as error:
            raise self._discard(process, error) from error

    async def _run_async(self, job: Job, timeout: float) -> Verdict:
        process = self._process
        if process is None or process.owner != os.getpid():
            process = await asyncio.to_thread(self._running)
        loop = asyncio.get_running_loop()
        try:
            with _Submission(process, job, timeout) as submission:
                submission.reply.setblocking(False)
                for patience in (_QUEUE_S, timeout + _GRACE_S):
                    with submission.turn():
                        async with asyncio.timeout(patience):
                            said = await loop.sock_recv(submission.reply, 4096)
                    if submission.hear(said):
                        break
                return submission.verdict()
        except (OSError, Broken) as error:
            raise self._discard(process, error) from error

    def _running(self) -> _Process:
        with self._lock:
            process = self._process
            # After a fork the zygote is the parent's.
            if process is None or process.owner != os.getpid():
                process = self._process = start(self._tiers)
            return process

    def _discard(self, process: _Process, error: Exception) -> Exception:
        """End a zygote that has failed, and return what to raise."""
        with self._lock:
            if self._process is process:
                self._process = None
        process.end()
        if isinstance(error, TimeoutError):
            # Once more would take twice the time that the caller was promised.
            return SandboxUnavailable("the sandbox did not answer in time")
        return _Lost(str(error) or type(error).__name__)


class _Submission:
    """One job on its way: the descriptors it needs, and what comes back."""

    def __init__(self, process: _Process, job: Job, timeout: float) -> None:
        self.reply, theirs = socket.socketpair()
        self._read_verdict, write_verdict = os.pipe()
        self._process = process
        self._heard = b""
        self._output = _anonymous_file()
        work = _anonymous_file()
        fields = {name: getattr(job, name) for name in Job.__slots__}
        try:
            with open(work, "wb", closefd=False) as file:
                file.write(json.dumps(fields).encode())
            descriptors = [theirs.fileno(), work, write_verdict, self._output]
            # Small enough to be sent whole, from however many threads.
            socket.send_fds(process.control, [REQUEST.pack(timeout)], descriptors)
        except BaseException:
            self.__exit__()
            raise
        finally:
            theirs.close()
            os.close(write_verdict)
            os.close(work)

    def __enter__(self) -> "_Submission":
        return self

    def __exit__(self, *problem: object) -> None:
        self.reply.close()
        os.close(self._read_verdict)
        os.close(self._output)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Tell a job that was not begun in time, which is no fault of the zygote."""
        try:
            yield
        except TimeoutError as error:
            if self._heard:
                raise
            raise SandboxUnavailable(
                f"the sandbox had no place for a program within {_QUEUE_S:g} s"
            ) from error

    def hear(self, data: bytes) -> bool:
        """Take what the zygote says; True once it has said all, raises Broken if it cannot."""
        if not data:
            raise Broken("the zygote ended")
        self._heard += data
        return len(self._heard) > 1

    def verdict(self) -> Verdict:
        """Read the verdict; the tester and the candidate have ended."""
        report = json.loads(self._heard[5:])
        told: dict[str, Any] = {
            "seconds": float(report["seconds"]),
            "output": read_all(self._output, _MAX_OUTPUT).decode("utf-8", "replace"),
            "tier": self._process.tier,
            "landlock_abi": self._process.landlock_abi,
        }
        if report["reason"]:
            return Verdict(False, report["reason"], **told)
        raw = os.read(self._read_verdict, _MAX_VERDICT)
        if not raw:
            return Verdict(False, "tests_crashed", "the tests ended without a verdict", **told)
        said = json.loads(raw)
        passed = said["passed"] is True
        return Verdict(passed, said["reason"], said["message"], said["integrity"], **told)


def start(tiers: Sequence[Tier]) -> _Process:
    """Start a zygote in the best tier that works; raises SandboxUnavailable if none does."""
    problems = []
    for tier in tiers:
        try:
            return _start(tier)
        except (OSError, Broken) as error:
            problems.append(f"{tier.name}: {error}")
            _log.info("sandbox tier %s does not work here: %s", tier.name, error)
    raise SandboxUnavailable(
        f"programs cannot be locked in well enough on this machine ({'; '.join(problems)}). "
        'Allow user namespaces or Landlock, or accept less isolation with sandbox "best-effort".'
    )


def _start(tier: Tier) -> _Process:
    ours, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as complaints:
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LAUNCH), str(theirs.fileno()), tier.name],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            # Nothing of our environment: no candidate shall find a secret in its memory.
            env={
                "PATH": "/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "MALLOC_ARENA_MAX": "2",
                "LD_BIND_NOW": "1",
            },
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        try:
            ours.settimeout(_START_S)
            # Waits for the first byte only; what follows comes at once.
            ours.recv(1, socket.MSG_PEEK)
            ours.settimeout(None)
            hello = receive(ours.fileno())
            if "error" in hello:
                complaints.seek(0)
                said = complaints.read(2000).decode("utf-8", "replace").strip()
                raise Broken(" ".join(filter(None, [hello["error"], said])))
        except BaseException:
            ours.close()
            popen.kill()
            popen.wait()
            raise
    return _Process(popen, ours, tier, int(hello["landlock_abi"]))


def _anonymous_file() -> int:
    """Return a descriptor of a file in memory that has no name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("cbench", os.MFD_CLOEXEC)
    descriptor, path = tempfile.mkstemp()
    with contextlib.suppress(OSError):
        os.unlink(path)
    return descriptor


@functools.cache
def shared_sandbox(policy: str) -> Sandbox:
    """Return the one sandbox that this process has for a policy."""
    sandbox = Sandbox(POLICIES[policy])
    atexit.register(sandbox.close)
    return sandbox
