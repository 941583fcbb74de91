"""The zygote: jails itself once, keeps pairs ready, and ends what has taken too long.

It never reads a program, a test or a verdict. Candidates inherit its memory,
so what it does not know they cannot find there.
"""

import contextlib
import gc
import os
import selectors
import signal
import socket
import struct
import time
from collections import deque
from typing import Any

from cbench_server.sandbox import landlock, namespaces, orphans
from cbench_server.sandbox.limits import DISK_MB, be_ended_first, memory_of_all
from cbench_server.sandbox.pair import CANDIDATE_READY, DONE, TESTER_READY, Jail, Pair
from cbench_server.sandbox.rehearsal import rehearse
from cbench_server.sandbox.syscalls import IS_LINUX
from cbench_server.sandbox.tiers import NAMESPACES, PROCESS, TIERS, Tier, readable_paths
from cbench_server.sandbox.usage import Meter
from cbench_server.sandbox.wire import send

REQUEST = struct.Struct("<d")
"""What comes with a job: its timeout in seconds. Its four descriptors are the
reply socket, the job, the end of the verdict pipe and the output file."""

_CORES = os.cpu_count() or 1
_QUIET = 2 * _CORES
_MOST = max(16, 2 * _QUIET)
_PATIENCE_S = 0.5
_START_S = 10.0
# How often what the kernel does not bound is measured.
_LOOK_S = 0.05
_MAX_FAILURES = 3


class _Job:
    def __init__(self, timeout: float, descriptors: list[int]) -> None:
        self.timeout = timeout
        self.reply, *self.hand_over = descriptors
        self.queued = time.monotonic()
        self.is_watched = False
        """Whether we would hear that whoever asked is gone."""


class _Slot:
    """A pair in its life: starting, ready, running, ending."""

    def __init__(self, pair: Pair, deadline: float) -> None:
        self.pair = pair
        self.waiting_for = {TESTER_READY, CANDIDATE_READY}
        self.job: _Job | None = None
        self.deadline = deadline
        self.started = 0.0
        self.is_ending = False
        self.is_watched = False
        self.reason = ""
        """Why the job was ended from here; empty if it ended by itself."""
        self.alive = {pair.tester, pair.candidate}


class Zygote:
    """The event loop around the pairs."""

    def __init__(self, control: socket.socket, tier: Tier) -> None:
        self._control = control
        self._tier = tier
        self._jail = Jail(tier, readable_paths())
        self._selector = selectors.DefaultSelector()
        self._slots: list[_Slot] = []
        self._queue: deque[_Job] = deque()
        self._failures = 0
        self._is_open = True
        self._meter = Meter(memory_of_all())
        self._look_at = 0.0

    def run(self) -> None:
        """Serve until the other end of the control socket is closed."""
        rehearse()
        version = landlock.abi()
        if self._tier is NAMESPACES:
            namespaces.enter(self._jail.readable)
        if IS_LINUX:
            orphans.adopt()
        self._jail.prepare()
        gc.collect()
        gc.freeze()
        wake, wake_end = socket.socketpair()
        wake.setblocking(False)
        wake_end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake_end.fileno(), warn_on_full_buffer=False)
        self._selector.register(wake, selectors.EVENT_READ, None)
        self._watch(*self._fork(1))
        while self._slots[0].waiting_for:
            self._turn(wake)
        self._jail.is_unproven = False
        send(self._control.fileno(), {"tier": self._tier.name, "landlock_abi": version})
        self._control.setblocking(False)
        self._selector.register(self._control, selectors.EVENT_READ, self)
        try:
            while self._is_open:
                self._top_up()
                self._turn(wake)
        finally:
            self._end_all()

    def _turn(self, wake: socket.socket) -> None:
        for key, _ in self._selector.select(self._time_left()):
            if key.data is self:
                self._accept()
            elif isinstance(key.data, _Job):
                self._abandon(key.data)
            elif key.data is None:
                with contextlib.suppress(BlockingIOError):
                    wake.recv(4096)
            else:
                self._hear(key.data)
        # Last, since it closes descriptors that events may still speak of.
        self._reap()
        self._end_excess()
        self._start_jobs()

    def _end_excess(self) -> None:
        now = time.monotonic()
        for slot in self._slots:
            if slot.is_ending:
                continue
            if slot.deadline <= now and (slot.job is not None or not self._is_ready(slot)):
                self._end(slot, "timeout")
            elif slot.job is not None and slot.pair.disk_used() > DISK_MB << 20:
                self._end(slot, "disk")
        if now >= self._look_at:
            self._look_at = now + _LOOK_S
            running = {s.pair: s for s in self._slots if s.job is not None and not s.is_ending}
            for pair, what in self._meter.excess(running):
                self._end(running[pair], what)

    def _abandon(self, job: _Job) -> None:
        """End a job that nobody waits for any more: the other end says nothing, it closes."""
        self._unwatch_reply(job)
        for slot in self._slots:
            if slot.job is job and not slot.is_ending:
                self._end(slot, "abandoned")

    def _unwatch_reply(self, job: _Job) -> None:
        if job.is_watched:
            job.is_watched = False
            self._selector.unregister(job.reply)

    def _time_left(self) -> float | None:
        moments = [slot.deadline for slot in self._slots if not slot.is_ending]
        if any(slot.job is not None for slot in self._slots):
            moments.append(time.monotonic() + _LOOK_S)
        if self._queue:
            moments.append(self._queue[0].queued + _PATIENCE_S)
        soonest = min(moments, default=float("inf"))
        return None if soonest == float("inf") else max(0.0, soonest - time.monotonic())

    def _accept(self) -> None:
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._control, REQUEST.size, 4)
            except BlockingIOError:
                return
            if len(data) != REQUEST.size or len(descriptors) != 4:
                self._is_open = False
                return
            (timeout,) = REQUEST.unpack(data)
            self._queue.append(_Job(timeout, list(descriptors)))

    def _start_jobs(self) -> None:
        while self._queue:
            running = sum(slot.job is not None for slot in self._slots)
            waited = time.monotonic() - self._queue[0].queued
            # More than the cores can carry only once a job has waited long enough.
            if running >= (_QUIET if waited < _PATIENCE_S else _MOST):
                return
            waiting = [slot for slot in self._slots if slot.job is None and not slot.is_ending]
            ready = next(filter(self._is_ready, waiting), None)
            if ready is None:
                if not waiting:
                    waiting = self._fork(1)
                for slot in waiting:
                    self._watch(slot)
                return
            self._start_next(ready)

    def _start_next(self, slot: _Slot) -> None:
        """Start the job that waits longest, unless nobody waits for it any more."""
        job = self._queue.popleft()
        try:
            os.write(job.reply, b"s")
        except OSError:
            for descriptor in (job.reply, *job.hand_over):
                os.close(descriptor)
        else:
            self._start(slot, job)

    def _start(self, slot: _Slot, job: _Job) -> None:
        slot.job, slot.started = job, time.monotonic()
        slot.deadline = slot.started + job.timeout
        job.is_watched = True
        self._selector.register(job.reply, selectors.EVENT_READ, job)
        try:
            slot.pair.hand_over(job.hand_over)
        except OSError:
            self._end(slot)
        for descriptor in job.hand_over:
            os.close(descriptor)
        self._watch(slot)

    def _top_up(self) -> None:
        waiting = sum(slot.job is None and not slot.is_ending for slot in self._slots)
        if waiting <= self._tier.forks_ahead // 4:
            self._fork(self._tier.forks_ahead - waiting)

    def _fork(self, count: int) -> list[_Slot]:
        """Fork pairs, all at once: what the zygote writes to between forks is copied each time."""
        pairs = [Pair(self._jail) for _ in range(count)]
        for pair in pairs:
            pair.fork()
        for pair in pairs:
            pair.close_ends()
        slots = [_Slot(pair, time.monotonic() + _START_S) for pair in pairs]
        self._slots += slots
        return slots

    def _watch(self, slot: _Slot) -> None:
        """Wake up for what a pair says; until a job needs it, that can wait in the pipe."""
        if not slot.is_watched:
            slot.is_watched = True
            self._selector.register(slot.pair.signals, selectors.EVENT_READ, slot)

    def _unwatch(self, slot: _Slot) -> None:
        if slot.is_watched:
            slot.is_watched = False
            self._selector.unregister(slot.pair.signals)

    def _is_ready(self, slot: _Slot) -> bool:
        if slot.waiting_for:
            self._hear(slot)
        return not slot.waiting_for and not slot.is_ending

    def _hear(self, slot: _Slot) -> None:
        try:
            said = os.read(slot.pair.signals, 16)
        except BlockingIOError:
            return
        if not said:
            self._unwatch(slot)
        slot.waiting_for -= {said[i : i + 1] for i in range(len(said))}
        if not slot.waiting_for and slot.job is None:
            slot.deadline = float("inf")
            self._failures = 0
        if DONE in said and not slot.is_ending:
            is_excess = slot.pair.disk_used() > DISK_MB << 20
            self._end(slot, "disk" if is_excess else "")

    def _end(self, slot: _Slot, reason: str = "") -> None:
        slot.is_ending = True
        slot.reason = slot.reason or reason
        slot.pair.kill()

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for slot in [each for each in self._slots if pid in each.alive]:
                self._bury(slot, pid)

    def _bury(self, slot: _Slot, pid: int) -> None:
        slot.alive.discard(pid)
        if pid == slot.pair.tester or slot.job is None:
            self._end(slot)
        if slot.alive:
            return
        if not self._is_ready(slot) and slot.waiting_for:
            self._failures += 1
            if self._failures >= _MAX_FAILURES or self._slots == [slot]:
                raise RuntimeError("a candidate could not be jailed")
        self._slots.remove(slot)
        if self._tier is PROCESS and IS_LINUX:
            orphans.kill_orphans({pid for each in self._slots for pid in each.alive})
        self._unwatch(slot)
        slot.pair.clean_up()
        if slot.job is not None:
            self._report(slot, slot.job)

    def _report(self, slot: _Slot, job: _Job) -> None:
        report = {"reason": slot.reason, "seconds": time.monotonic() - slot.started}
        # Whoever asked may be gone.
        with contextlib.suppress(OSError):
            send(job.reply, report)
        self._unwatch_reply(job)
        os.close(job.reply)

    def _end_all(self) -> None:
        for slot in self._slots:
            slot.pair.kill()
        for slot in self._slots:
            for pid in slot.alive:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            slot.pair.clean_up()


def main(arguments: list[str]) -> None:
    """Run a zygote on the control socket and in the tier that the arguments name."""
    control = socket.socket(fileno=int(arguments[0]))
    report: dict[str, Any] = {}
    be_ended_first()
    try:
        Zygote(control, TIERS[arguments[1]]).run()
    except Exception as error:
        report = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError):
            send(control.fileno(), report)
