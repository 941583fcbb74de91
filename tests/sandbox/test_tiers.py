"""Every tier judges alike, as root and as an ordinary user, and leaves nothing behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cbench_server.sandbox.client import Job, Sandbox, SandboxUnavailable, Verdict, shared_sandbox
from cbench_server.sandbox.tiers import LANDLOCK, NAMESPACES, POLICIES, TIERS, Tier

from .cases import ATTACKS, CHECK, LEGITIMATE, PROMPT

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 20.0
NOBODY = 65534

# What each tier must refuse, though not in the same way.
REFUSED = {
    "namespaces": ("exits", "tampering", "forgeries", "resources"),
    "landlock": ("exits", "tampering", "forgeries", "resources"),
    "seccomp": ("exits", "tampering", "forgeries"),
    "process": ("tampering",),
}


@pytest.fixture(params=TIERS.values(), ids=TIERS.keys())
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    tier: Tier = request.param
    sandbox = Sandbox((tier,))
    yield sandbox
    sandbox.close()


def run(sandbox: Sandbox, response: str, timeout: float = 5.0) -> Verdict:
    return sandbox.run(Job(response, (CHECK,), PROMPT, "scale"), timeout)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def descendants(pid: int) -> set[int]:
    """Return the processes below one, however deep."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    frontier = {pid}
    while frontier := {child for child, parent in parents.items() if parent in frontier} - found:
        found |= frontier
    return found


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def work_areas() -> set[str]:
    return {path.name for path in Path("/tmp").glob("cbench-sandbox-*")}


def lasting(areas: set[str]) -> set[str]:
    """Return those that stay: one of a test beside this one goes with its program."""
    deadline = time.monotonic() + 60
    while (areas := areas & work_areas()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return areas


def test_a_tier_judges_and_cleans_up(sandbox: Sandbox) -> None:
    before = work_areas()
    for name in ("continuation", "tempfile", "threads", "recursion", "rare-modules", "prints"):
        verdict = run(sandbox, LEGITIMATE["responses"][name], 20.0)
        assert verdict.passed, (name, verdict)
    assert verdict.tier is not None
    for kind in REFUSED[verdict.tier.name]:
        for name, attack in ATTACKS[kind].items():
            assert not run(sandbox, attack, 2.0).passed, name
    sandbox.close()
    assert not lasting(work_areas() - before)


def test_a_hang_ends_in_every_tier(sandbox: Sandbox) -> None:
    assert run(sandbox, ATTACKS["hangs"]["signals-blocked"], 0.5).reason == "timeout"
    assert run(sandbox, "    return n * 47\n").passed


def test_what_a_program_starts_ends_with_it_in_every_tier(sandbox: Sandbox) -> None:
    daemon = (
        "    import os\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            os.execv('/bin/sleep', ['sleep', '98765'])\n        os._exit(0)\n"
        "    return n * 47\n"
    )
    run(sandbox, daemon)
    lines = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _reads(path, "98765")]
    assert not lines


def _reads(path: Path, text: str) -> bool:
    try:
        return text in path.read_text()
    except OSError:
        return False


@pytest.mark.parametrize("tier", [NAMESPACES, LANDLOCK], ids=["namespaces", "landlock"])
def test_files_outside_are_closed(tier: Tier, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    sandbox = Sandbox((tier,))
    for action in (
        f"print(open('{tmp_path}/secret').read())",
        f"__import__('os').chmod('{tmp_path}/secret', 0o777)",
        f"__import__('os').truncate('{tmp_path}/secret', 0)",
        f"__import__('os').utime('{tmp_path}/secret', (0, 0))",
        f"open('{tmp_path}/new', 'w')",
        "print(open('/proc/self/environ').read())",
    ):
        verdict = run(sandbox, f"    {action}\n")
        assert (verdict.reason, verdict.output) == ("raised", ""), action
    sandbox.close()
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert (tmp_path / "secret").stat().st_mode & 0o777 != 0o777


def test_a_killed_zygote_is_replaced_and_takes_its_children_along() -> None:
    sandbox = Sandbox(POLICIES["strict"])
    assert run(sandbox, "    return n * 47\n").passed
    zygote = next(pid for pid in descendants(os.getpid()) if _is_zygote_of(sandbox, pid))
    children = descendants(zygote)
    os.kill(zygote, signal.SIGKILL)
    assert run(sandbox, "    return n * 47\n").passed
    wait_until(lambda: not any(map(is_alive, children)))
    sandbox.close()


def _is_zygote_of(sandbox: Sandbox, pid: int) -> bool:
    process = sandbox._process
    return process is not None and process.popen.pid == pid


def test_a_zygote_killed_under_a_job_costs_one_retry() -> None:
    sandbox = Sandbox(POLICIES["strict"])
    assert run(sandbox, "    return n * 47\n").passed
    first = sandbox._process
    assert first is not None
    verdicts: list[Verdict] = []
    slow = "    import time\n    time.sleep(1)\n    return n * 47\n"
    jobs = range(NAMESPACES.forks_ahead)

    def work() -> None:
        verdicts.append(run(sandbox, slow, 20.0))

    threads = [threading.Thread(target=work) for _ in jobs]
    for thread in threads:
        thread.start()
    # Pairs wait ahead; more of them means that jobs have some.
    wait_until(lambda: len(descendants(first.popen.pid)) > 2 * NAMESPACES.forks_ahead)
    first.popen.kill()
    for thread in threads:
        thread.join()
    assert [verdict.passed for verdict in verdicts] == [True] * len(jobs)
    sandbox.close()


def test_the_zygote_ends_with_the_process_that_started_it() -> None:
    program = (
        "import sys\nfrom cbench_server.sandbox.client import Job, shared_sandbox\n"
        "sandbox = shared_sandbox('strict')\n"
        "verdict = sandbox.run(Job('def f(): return 1', ('assert f() == 1',)), 10)\n"
        "print(verdict.passed, flush=True)\n"
        "sandbox.run(Job('def f():\\n    while True: pass', ('f()',)), 100)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    below = descendants(process.pid)
    assert below
    process.kill()
    process.wait()
    process.stdout.close()
    wait_until(lambda: not any(map(is_alive, below)))


def test_one_zygote_serves_all_of_a_process() -> None:
    assert shared_sandbox("strict") is shared_sandbox("strict")


def test_a_machine_that_offers_too_little_is_told_what_to_do() -> None:
    impossible = NAMESPACES._replace(name="external")
    with pytest.raises(SandboxUnavailable, match=r"external: .*best-effort"):
        run(Sandbox((impossible,)), "    return n * 47\n")


def test_the_next_tier_is_taken_where_the_best_does_not_work() -> None:
    sandbox = Sandbox((NAMESPACES._replace(name="external"), LANDLOCK))
    assert run(sandbox, "    return n * 47\n").tier == LANDLOCK
    sandbox.close()


def _interpreter_for_all() -> str | None:
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = [path, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        with contextlib.suppress(OSError):
            user = NOBODY if os.getuid() == 0 else os.getuid()
            if subprocess.run(check, user=user, capture_output=True, check=False).returncode == 0:
                return path
    return None


@pytest.mark.parametrize("tier", TIERS)
def test_an_ordinary_user_gets_the_same(tier: str) -> None:
    python = _interpreter_for_all()
    if python is None or not os.access(ROOT, os.R_OK):
        pytest.skip("no Python that another user may run")
    program = (
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from cbench_server.sandbox.client import Job, Sandbox\n"
        "from cbench_server.sandbox.tiers import TIERS\n"
        f"sandbox = Sandbox((TIERS[{tier!r}],))\n"
        "for body in ('return n * 47', 'return 0', 'import os; os._exit(0)'):\n"
        "    job = Job('def f(n):\\n    ' + body, ('assert f(2) == 94',))\n"
        "    print(sandbox.run(job, 10).reason or 'passed')\n"
        "sandbox.close()\n"
    )
    user = NOBODY if os.getuid() == 0 else os.getuid()
    given = subprocess.run(
        [python, "-B", "-c", program],
        user=user,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert given.stdout.split() == ["passed", "wrong_answer", "exited_early"], given.stderr
