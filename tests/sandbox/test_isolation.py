"""Programs reach nothing outside their jail, use no more than they may, and leave nothing."""

import contextlib
import os
import resource
import socket
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .cases import ATTACKS, CHECK, scale, score

LEEWAY = 96 << 20


def resident() -> int:
    """Return the memory this process has, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", ATTACKS["resources"])
def test_what_is_too_much_is_refused(name: str) -> None:
    before = resident()
    test = "def check(candidate):\n    r = candidate(2)\n    assert r == 94 or list(r) == 94\n"
    assert score(scale(test), ATTACKS["resources"][name]) == 0.0
    assert resident() - before < LEEWAY


def test_a_flood_of_output_does_not_reach_us() -> None:
    before = resident()
    flood = (
        "    import sys\n    for _ in range(2000):\n        sys.stdout.write('x' * (1 << 20))\n"
        "    return n * 47\n"
    )
    assert score(scale(CHECK), flood) == 0.0
    assert resident() - before < LEEWAY


@dataclass
class Canary:
    """What must stay as it is, and who must not be called."""

    home: Path
    secret: str
    tag: str
    names: dict[str, str]
    contacts: list[str]


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canary]:
    secret, tag = uuid.uuid4().hex, uuid.uuid4().hex
    (tmp_path / "secret.txt").write_text(secret)
    (tmp_path / "secret.txt").chmod(0o644)
    tmp_path.chmod(0o777)
    monkeypatch.setenv("CBENCH_CANARY_API_KEY", secret)
    monkeypatch.chdir(tmp_path)
    servers = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(type=socket.SOCK_DGRAM),
        "unix": socket.socket(socket.AF_UNIX),
        "abstract": socket.socket(socket.AF_UNIX),
    }
    servers["udp"].bind(("127.0.0.1", 0))
    servers["unix"].bind(str(tmp_path / "sock"))
    servers["abstract"].bind(f"\0cbench-{tag}")
    contacts: list[str] = []
    with contextlib.ExitStack() as stack:
        for name, server in servers.items():
            stack.enter_context(listening(name, server, contacts))
        names = {
            "HOME": str(tmp_path),
            "TAG": tag,
            "TCP": str(servers["tcp"].getsockname()[1]),
            "UDP": str(servers["udp"].getsockname()[1]),
            "PID": str(os.getpid()),
            "NUMBER": str(uuid.uuid4().int)[:8],
        }
        yield Canary(tmp_path, secret, tag, names, contacts)


@contextlib.contextmanager
def listening(name: str, server: socket.socket, contacts: list[str]) -> Iterator[None]:
    """Note in `contacts` whoever calls."""
    if name != "udp":
        server.listen()

    def listen() -> None:
        with contextlib.suppress(OSError):
            if name == "udp":
                server.recv(1)
            else:
                server.accept()
            if not done.is_set():
                contacts.append(name)

    done = threading.Event()
    thread = threading.Thread(target=listen)
    thread.start()
    yield
    done.set()
    # Closing does not wake who waits for a call.
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
    server.close()


@pytest.mark.parametrize("name", ATTACKS["isolation"])
def test_nothing_outside_is_reached(name: str, canary: Canary) -> None:
    attack = ATTACKS["isolation"][name]
    for key, value in canary.names.items():
        attack = attack.replace(f"{{{key}}}", value)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    test = f"def check(candidate):\n    assert candidate(2) == '{canary.secret}'\n"
    assert score(scale(test), attack) == 0.0
    secret = canary.home / "secret.txt"
    assert secret.read_text() == canary.secret
    assert secret.stat().st_mode & 0o777 == 0o644
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limits
    assert not canary.contacts
    for place in (canary.home, *map(Path, ("/", "/tmp", "/var/tmp", "/dev/shm")), Path.home()):
        assert not [path for path in place.iterdir() if canary.tag in path.name]
    assert f"1{canary.names['NUMBER']}" not in command_lines()


def command_lines() -> str:
    """Return the command lines of all processes."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_text())
    return "\n".join(lines)
