"""Errors of the SDKs, driven: the same cause at the same daemon has the same name and reason.

docs/errors.md has the table; tests/sdks/test_errors.py holds it against the sources.
"""

import re
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import grpc
import pytest

from tests.e2e.processes import DaemonProcess
from tests.fixtures.certificates import make_certificates
from tests.fixtures.ports import held_port
from tests.fixtures.sdks import GO, NODE, ROOT, RUST, SDKS, Sdk, built, run

PROGRAMS = Path(__file__).with_name("causes")
LONG, SHORT = "60000", "300"
TOKENS = (("secret", "admin"), ("referee", "score"))
"""Names, which are the tokens themselves, and what they are for."""
Cause = tuple[str, str, str, str, str]
"""An address, a token, whether by TLS, an authority, and milliseconds."""

WANTED = {
    "no-such-run": "Refused UNKNOWN_RUN",
    "no-token": "Refused UNAUTHENTICATED",
    "a-wrong-token": "Refused UNAUTHENTICATED",
    "a-token-for-something-else": "Refused PERMISSION_DENIED",
    "a-token-in-the-clear": "InsecureToken INSECURE_TOKEN",
    "nobody-there": "Unreachable UNREACHABLE",
    "no-such-host": "Unreachable UNREACHABLE",
    "no-answer-in-time": "Unreachable UNREACHABLE",
    "no-daemon": "Unreachable UNREACHABLE",
    "tls-wanted": "Unreachable UNREACHABLE",
    "tls-not-wanted": "Unreachable UNREACHABLE",
    "a-certificate-of-a-stranger": "Unreachable UNREACHABLE",
}


@pytest.fixture(scope="module")
def causes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Cause]]:
    """What to ask, by what is wrong with it."""
    folder = tmp_path_factory.mktemp("causes")
    make_certificates(folder, "own", "other")
    ca, key, other = (str(folder / name) for name in ("own.crt", "own.key", "other.crt"))
    lines = [f"{name} {role} sha256:{sha256(name.encode()).hexdigest()}" for name, role in TOKENS]
    (folder / "tokens").write_text("\n".join(lines))
    silent = socket.create_server(("127.0.0.1", 0))
    foreign = grpc.server(ThreadPoolExecutor(1))
    elsewhere = f"127.0.0.1:{foreign.add_insecure_port('127.0.0.1:0')}"
    foreign.start()
    with ExitStack() as stack:
        plain = stack.enter_context(DaemonProcess(folder / "plain")).address
        flags = (f"--tls-cert={ca}", f"--tls-key={key}")
        strict = stack.enter_context(
            DaemonProcess(folder / "strict", *flags, f"--token-file={folder / 'tokens'}")
        ).address
        yield {
            "no-such-run": (plain, "", "", "", LONG),
            "no-token": (strict, "", "tls", ca, LONG),
            "a-wrong-token": (strict, "guess", "tls", ca, LONG),
            "a-token-for-something-else": (strict, "referee", "tls", ca, LONG),
            "a-token-in-the-clear": ("bench.example.org:50051", "secret", "", "", LONG),
            "nobody-there": (f"127.0.0.1:{held_port()}", "", "", "", LONG),
            "no-such-host": ("no-such-host.invalid:1", "", "", "", LONG),
            "no-answer-in-time": (f"127.0.0.1:{silent.getsockname()[1]}", "", "", "", SHORT),
            "no-daemon": (elsewhere, "", "", "", LONG),
            "tls-wanted": (strict, "", "", "", LONG),
            "tls-not-wanted": (plain, "", "tls", ca, LONG),
            "a-certificate-of-a-stranger": (strict, "secret", "tls", other, LONG),
        }
    silent.close()
    foreign.stop(None)


@pytest.fixture(scope="module", params=SDKS, ids=lambda sdk: sdk.name)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, ...]:
    """How an SDK's program is started."""
    sdk: Sdk = built(request.param)
    folder = tmp_path_factory.mktemp("program")
    if sdk is GO:
        run("go", "build", "-o", folder, "./internal/causes", cwd=sdk.folder, **sdk.environment)
        return (str(folder / "causes"),)
    if sdk is RUST:
        return tuple(sdk.command("causes"))
    if sdk is NODE:
        return ("node", str(PROGRAMS / "causes.js"))
    return (sys.executable, str(PROGRAMS / "causes.py"))


def _told(printed: str) -> str:
    """Return what a program printed, without what a language adds to names."""
    name, _, reason = printed.strip().partition(" ")
    return f"{re.sub(r'^[*]cbench[.]|Error$', '', name)} {reason}"


def test_the_same_cause_has_the_same_name_and_reason(
    program: tuple[str, ...], causes: dict[str, Cause]
) -> None:
    found = {
        name: _told(run(*program, *cause, cwd=ROOT, seconds=120)) for name, cause in causes.items()
    }
    assert found == WANTED
