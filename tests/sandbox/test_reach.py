"""Tests are code as well: they signal nobody, and nobody runs on once its asker is gone."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cbench_server.errors import InvalidInput
from cbench_server.evaluators import CodeExecution
from cbench_server.sandbox.client import Job, Sandbox
from cbench_server.sandbox.limits import (
    MAX_THREADS,
    MAX_TIMEOUT_S,
    memory_of_all,
    memory_of_groups,
)
from cbench_server.sandbox.tiers import LANDLOCK, NAMESPACES, SECCOMP, Tier
from cbench_server.sandbox.usage import Meter

from .test_tiers import descendants, wait_until

FILTERED = (NAMESPACES, LANDLOCK, SECCOMP)

# Every way there is to have the kernel signal a process that a descriptor is "owned" by.
OWNED = """
import fcntl, socket, struct

def attempt(victim):
    for own in (
        lambda end: fcntl.fcntl(end, 8, victim),
        lambda end: fcntl.fcntl(end, 15, struct.pack('ii', 1, victim)),
        lambda end: fcntl.fcntl(end, 15, struct.pack('ii', 0, victim)),
        lambda end: fcntl.ioctl(end, 0x8901, struct.pack('i', victim)),
        lambda end: fcntl.ioctl(end, 0x8902, struct.pack('i', victim)),
    ):
        a, b = socket.socketpair()
        for step in (
            lambda: own(a.fileno()),
            lambda: fcntl.fcntl(a.fileno(), 10, 9),
            lambda: fcntl.fcntl(a.fileno(), 4, fcntl.fcntl(a.fileno(), 3) | 0o20000 | 0o4000),
            lambda: b.send(b'x'),
        ):
            try:
                step()
            except OSError:
                pass
"""


@pytest.fixture(params=FILTERED, ids=[tier.name for tier in FILTERED])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    tier: Tier = request.param
    sandbox = Sandbox((tier,))
    yield sandbox
    sandbox.close()


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of our own user, which is what the daemon is to its jail."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def _zygote(sandbox: Sandbox) -> int:
    assert sandbox._process is not None
    return sandbox._process.popen.pid


def test_neither_tests_nor_programs_signal_anyone(
    sandbox: Sandbox, victim: subprocess.Popen[bytes]
) -> None:
    assert sandbox.run(Job("def f(n): return n", ("assert f(1) == 1",)), 10).passed
    for pid in (victim.pid, _zygote(sandbox)):
        test = f"{OWNED}\nattempt({pid})\nassert f(1) == 1\n"
        program = f"{OWNED}\ndef f(n):\n    attempt({pid})\n    return n\n"
        for response, tests in (("def f(n): return n", test), (program, "assert f(1) == 1")):
            verdict = sandbox.run(Job(response, (tests,)), 10)
            assert verdict.passed, verdict
    assert victim.poll() is None


def test_tests_are_in_a_process_table_of_their_own() -> None:
    sandbox = Sandbox((NAMESPACES,))
    test = "import os\nassert f(1) == 1\nassert (os.getpid(), os.getppid()) == (1, 0)"
    verdict = sandbox.run(Job("def f(n): return n", (test,)), 10)
    sandbox.close()
    assert verdict.passed, verdict


@pytest.mark.parametrize("tier", [LANDLOCK, SECCOMP], ids=["landlock", "seccomp"])
def test_metadata_of_the_hosts_files_is_closed_to_descriptors_as_well(tier: Tier) -> None:
    """A read-only descriptor is enough to change the mode of a file of one's own."""
    sandbox = Sandbox((tier,))
    for action in (
        "os.fchmod(fd, os.fstat(fd).st_mode)",
        "os.fchown(fd, os.fstat(fd).st_uid, os.fstat(fd).st_gid)",
        "os.setxattr(fd, 'user.cbench', b'x')",
        "os.removexattr(fd, 'user.cbench')",
        "os.utime(fd, (0, 0))",
    ):
        body = (
            "    import os\n    fd = os.open(os.__file__, os.O_RDONLY)\n"
            f"    try:\n        {action}\n"
            "    except OSError as error:\n        return error.errno\n"
        )
        verdict = sandbox.run(Job(f"def f():\n{body}", ("assert f() == 1",)), 10)
        assert verdict.passed, (action, verdict)
    sandbox.close()


def test_a_crowd_of_threads_is_ended(sandbox: Sandbox) -> None:
    crowd = (
        "    import threading, time\n    threading.stack_size(32768)\n"
        f"    for _ in range({20 * MAX_THREADS}):\n"
        "        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "    time.sleep(30)\n"
    )
    verdict = sandbox.run(Job(f"def f():\n{crowd}", ("f()",)), 20)
    assert verdict.reason == "threads", verdict


def test_the_kernel_ends_programs_first_where_memory_runs_out(sandbox: Sandbox) -> None:
    """Where the machine or the daemon's control group has no more, it is not the daemon."""
    assert sandbox.run(Job("def f(n): return n", ("assert f(1) == 1",)), 10).passed
    ours = int(Path("/proc/self/oom_score_adj").read_text())
    for pid in {_zygote(sandbox), *descendants(_zygote(sandbox))}:
        assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) == 1000 > ours


class _Holding(NamedTuple):
    """Stands for a pair: two processes, of which one holds memory."""

    tester: int
    candidate: int


def test_programs_that_use_too_much_together_lose_the_largest() -> None:
    hold = "import sys; held = b'x' * (int(sys.argv[1]) << 20); print(flush=True); input()"
    with ExitStack() as stack:
        pairs = []
        for megabytes in (40, 160, 80):
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", hold, str(megabytes)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline()
            pairs.append(_Holding(process.pid, process.pid))
        everything: Any = pairs
        assert list(Meter(2 << 30).excess(everything)) == []
        assert list(Meter(400 << 20).excess(everything)) == [(pairs[1], "memory")]
        assert list(Meter(400 << 20).excess([everything[0], everything[2]])) == []


def test_a_control_group_lowers_what_programs_may_use(tmp_path: Path) -> None:
    """The limits of all groups that a process is in are read, and nothing is written there."""
    table = tmp_path / "cgroup"
    for lines, files, limits in (
        ("0::/a/b\n", {"a/memory.max": "500", "a/b/memory.max": "max"}, [500]),
        ("0::/\n", {"memory.max": "700"}, [700]),
        ("0::/not/in/sight\n", {"memory.max": "700"}, [700]),
        ("4:memory:/a\n1:cpu:/\n0::/\n", {"memory/a/memory.limit_in_bytes": "900"}, [900]),
        ("", {}, []),
    ):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        table.write_text(lines)
        for name, said in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"{said}\n")
        assert memory_of_groups(str(root), str(table)) == limits
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory_of_all() <= machine // 2


def test_a_program_nobody_waits_for_is_ended_and_one_that_waits_gets_its_place() -> None:
    sandbox = Sandbox((NAMESPACES,))
    assert sandbox.run(Job("def f(): return 1", ("assert f() == 1",)), 10).passed
    zygote = _zygote(sandbox)
    endless = Job("def f():\n    while True: __import__('time').sleep(1)", ("f()",))

    async def abandon() -> int:
        tasks = [asyncio.ensure_future(sandbox.run_async(endless, 50)) for _ in range(20)]
        while len(descendants(zygote)) < 32:
            await asyncio.sleep(0.02)
        crowd = len(descendants(zygote))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return crowd

    crowd = asyncio.run(abandon())
    assert sandbox.run(Job("def f(): return 1", ("assert f() == 1",)), 10).passed
    wait_until(lambda: len(descendants(zygote)) <= 2 * (NAMESPACES.forks_ahead + 1) < crowd)
    assert _zygote(sandbox) == zygote
    sandbox.close()


@pytest.mark.parametrize("timeout", [0, -1, MAX_TIMEOUT_S + 1, 1e9, float("inf"), float("nan")])
def test_no_program_may_be_given_forever(timeout: float) -> None:
    with pytest.raises(InvalidInput, match="at most 60"):
        CodeExecution(timeout=timeout)
