"""A tester and its candidate: two forks of the zygote, each in its jail, waiting for one job."""

# The module below `signal`, without the enumerations, which would cost every fork a tenth.
import _signal  # type: ignore[import-not-found]
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable

from cbench_server.sandbox import candidate, landlock, namespaces, seccomp, tester
from cbench_server.sandbox.limits import (
    DISK_MB,
    MEMORY_MB,
    TESTER_MEMORY_MB,
    close_others,
    limit_zygote,
    limits,
)
from cbench_server.sandbox.syscalls import (
    IS_LINUX,
    PR_GET_DUMPABLE,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    prctl,
    prepare,
)
from cbench_server.sandbox.tiers import LANDLOCK, NAMESPACES, PROCESS, Tier
from cbench_server.sandbox.wire import read_all

TESTER_READY, CANDIDATE_READY, DONE = b"t", b"c", b"d"
_MAX_JOB = 256 << 20
_FAILED = 70
_SIGCHLD, _SIG_DFL = int(signal.SIGCHLD), int(signal.SIG_DFL)
# Above what any kernel gives to a process.
_NO_PID = (1 << 31) - 1


class Jail:
    """What all pairs of a zygote have in common; made once."""

    def __init__(self, tier: Tier, readable: list[str]) -> None:
        self.tier = tier
        self.readable = readable
        self.is_unproven = True
        """Whether the next candidate has to show that it cannot get out."""
        self.mount_work_area: Callable[[], int]
        self.most_open = 0
        """Above all descriptors that the zygote may have."""
        self._calls: dict[bool, list[Callable[[], object]]] = {}
        self._filters: dict[bool, Callable[[], int]] = {}

    def prepare(self) -> None:
        """Do once, in the zygote, what its forks inherit, and make ready what they do not."""
        limit_zygote()
        self.most_open = os.sysconf("SC_OPEN_MAX")
        calls: list[Callable[[], object]] = []
        if self.tier is not PROCESS:
            prctl(PR_SET_NO_NEW_PRIVS, 1)
            calls.append(namespaces.capability_drop())
        if IS_LINUX:
            prctl(PR_SET_DUMPABLE, 0)
            calls.append(prepare("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        self._calls = {
            True: [*limits(MEMORY_MB, DISK_MB), *calls],
            False: [*limits(TESTER_MEMORY_MB, 1), *calls],
        }
        if self.tier is NAMESPACES:
            # Each of them is the first process of its namespace; no tester signals anyone.
            self._filters = {True: self._filter(1, True), False: self._filter(_NO_PID, False)}
            self.mount_work_area = namespaces.work_area_mount(DISK_MB)
            _set_environment(namespaces.WORK_AREA)

    def lock(self, *, is_candidate: bool) -> None:
        """Take away from this process, for good, all that it does not need."""
        for call in self._calls[is_candidate]:
            call()
        if self.tier is not PROCESS:
            known = self._filters.get(is_candidate)
            (known or self._filter(os.getpid(), is_candidate))()

    def _filter(self, pid: int, is_candidate: bool) -> Callable[[], int]:
        program = seccomp.build_filter(
            pid, host_files=self.tier is not NAMESPACES, may_pass_descriptors=not is_candidate
        )
        return seccomp.prepare_filter(program)


class Pair:
    """Two processes and the zygote's ends of what connects it to the tester."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail
        self.work = "" if jail.tier is NAMESPACES else _make_work_area()
        self.jobs, self._jobs_end = socket.socketpair()
        self._tester_end, self._candidate_end = socket.socketpair()
        self.signals, self._signals_end = os.pipe()
        os.set_blocking(self.signals, False)
        self.tester = self.candidate = 0

    def fork(self) -> None:
        """Start both processes; apart from the rest, so that several pairs can follow closely."""
        is_apart = self._jail.tier is NAMESPACES
        self.candidate = _fork(namespaces.fork_apart if is_apart else os.fork, self._be_candidate)
        self.tester = _fork(namespaces.fork_alone if is_apart else os.fork, self._be_tester)

    def close_ends(self) -> None:
        """Close here what only the two processes need."""
        for end in (self._jobs_end, self._tester_end, self._candidate_end):
            end.close()
        os.close(self._signals_end)

    def _be_candidate(self) -> None:
        _be_candidate(self._jail, self.work, self._candidate_end, self._signals_end)

    def _be_tester(self) -> None:
        _be_tester(self._jail, self._jobs_end, self._tester_end, self._signals_end)

    def hand_over(self, descriptors: list[int]) -> None:
        """Give the tester its job: the file that holds it, where the verdict and output go."""
        socket.send_fds(self.jobs, [b"."], descriptors)

    def kill(self) -> None:
        """Kill both, and with the candidate all that it started in its namespace or group."""
        for pid in (self.candidate, self.tester):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.work:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.candidate, signal.SIGKILL)

    def disk_used(self) -> int:
        """Return the bytes in the work area; 0 where the kernel bounds it."""
        if not self.work:
            return 0
        used = 0
        for place, _, files in os.walk(self.work):
            for name in files:
                with contextlib.suppress(OSError):
                    used += os.lstat(os.path.join(place, name)).st_blocks * 512
        return used

    def clean_up(self) -> None:
        """Close what is ours and remove the work area; the candidate is dead by now."""
        self.jobs.close()
        os.close(self.signals)
        if self.work:
            _remove(self.work)


def _fork(fork: Callable[[], int], work: Callable[[], None]) -> int:
    pid = fork()
    if pid:
        return pid
    code = _FAILED
    try:
        work()
        code = 0
    except BaseException as error:
        with contextlib.suppress(BaseException):
            os.write(2, f"sandbox: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _be_tester(jail: Jail, jobs: socket.socket, peer: socket.socket, signals: int) -> None:
    _reset_signals()
    close_others((jobs.fileno(), peer.fileno(), signals), jail.most_open)
    _silence(2)
    if jail.tier is LANDLOCK:
        landlock.restrict(jail.readable, ["/dev/null"])
    jail.lock(is_candidate=False)
    os.write(signals, TESTER_READY)
    _, (job, verdict, output), _, _ = socket.recv_fds(jobs, 1, 3)
    sys.setrecursionlimit(3000)
    os.write(
        verdict,
        json.dumps(tester.run(peer, output, json.loads(read_all(job, _MAX_JOB)))).encode(),
    )
    os.close(verdict)
    os.write(signals, DONE)
    # The zygote ends both of us.
    signal.pause()


def _be_candidate(jail: Jail, work: str, peer: socket.socket, signals: int) -> None:
    _reset_signals()
    close_others((peer.fileno(), signals), jail.most_open)
    if jail.tier is NAMESPACES:
        work = namespaces.WORK_AREA
        jail.mount_work_area()
    else:
        os.setsid()
        _set_environment(work)
    os.chdir(work)
    if jail.tier is LANDLOCK:
        landlock.restrict(jail.readable, [work, "/dev/null"])
    sys.argv = ["solution.py"]
    jail.lock(is_candidate=True)
    if jail.is_unproven:
        _verify(jail.tier)
    os.write(signals, CANDIDATE_READY)
    os.close(signals)
    candidate.serve(peer)


def _verify(tier: Tier) -> None:
    """Fail unless the jail holds: a kernel may accept what it then does not enforce."""
    if IS_LINUX and prctl(PR_GET_DUMPABLE, 0):
        raise RuntimeError("a jailed process can be looked into")
    if tier is PROCESS:
        return
    attempts: dict[str, Callable[[], object]] = {
        "make sockets": lambda: socket.socket(socket.AF_UNIX),
        "run programs": lambda: os.execv("/nonexistent", ["nonexistent"]),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except PermissionError:
            continue
        except OSError:
            pass
        raise RuntimeError(f"a jailed process can still {what}")
    if tier in (NAMESPACES, LANDLOCK):
        with contextlib.suppress(OSError):
            os.close(os.open("/etc/passwd", os.O_RDONLY))
            raise RuntimeError("a jailed process can still read /etc/passwd")


def _set_environment(work: str) -> None:
    os.environ.clear()
    os.environ.update(PATH="/usr/bin:/bin", HOME=work, TMPDIR=work, LANG="C.UTF-8")


def _reset_signals() -> None:
    _signal.set_wakeup_fd(-1)
    _signal.signal(_SIGCHLD, _SIG_DFL)


def _silence(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def _make_work_area() -> str:
    path = os.path.join(os.path.realpath("/tmp"), f"cbench-sandbox-{os.urandom(8).hex()}")
    os.mkdir(path, 0o700)
    return path


def _remove(directory: str) -> None:
    # Imported here, since forks of a zygote that needs no work areas would have to copy it.
    import shutil

    for place, folders, _ in os.walk(directory):
        for name in folders:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(directory, ignore_errors=True)
