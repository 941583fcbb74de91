"""Proof that the sandbox of this machine holds: programs run, and cannot reach the machine."""

import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cbench_server.sandbox.client import Job, Sandbox, SandboxUnavailable, Verdict
from cbench_server.sandbox.tiers import Tier

_TIMEOUT_S = 10.0
_HONEST = "def add(a, b):\n    return a + b\n"
_CALLER = """
import socket

def reached():
    try:
        socket.create_connection(("127.0.0.1", {port}), timeout=2).close()
    except OSError:
        return False
    return True
"""
_READER = """
def reached():
    try:
        with open({path!r}) as file:
            return bool(file.read())
    except OSError:
        return False
"""
_WRITER = """
def reached():
    try:
        with open({path!r}, "w") as file:
            file.write("reached")
    except OSError:
        return False
    return True
"""
_SIGNALLER = """
import os

def reached():
    try:
        os.kill({pid}, 0)
    except OSError:
        return False
    return True
"""


def prove(sandbox: Sandbox) -> Tier:
    """Run programs in a sandbox, and return the tier they ran in.

    Raises SandboxUnavailable if an honest program does not pass, or if one
    reaches the network, the files or the processes of this machine although
    the tier says that it cannot.
    """
    honest = _run(sandbox, _HONEST, "assert add(1, 2) == 3")
    if not honest.passed or honest.tier is None:
        raise SandboxUnavailable(
            f"a program that should pass did not: {honest.reason} {honest.message}".rstrip()
        )
    tier = honest.tier
    with _bait() as (port, folder):
        probes = {}
        if tier.network == "none":
            probes["the network"] = _CALLER.format(port=port)
        if tier.filesystem != "host":
            secret = folder / "secret"
            secret.write_text(secrets.token_hex())
            probes["files"] = _READER.format(path=str(secret))
            probes["a folder"] = _WRITER.format(path=str(folder / "written"))
        if tier.is_split_sound:
            probes["processes"] = _SIGNALLER.format(pid=os.getpid())
        for what, program in probes.items():
            # A tier may kill what tries; only one that reached something can pass.
            if _run(sandbox, program, "assert reached() is True").passed:
                raise SandboxUnavailable(_does_not_hold(tier, what))
        if (folder / "written").exists():
            raise SandboxUnavailable(_does_not_hold(tier, "a folder"))
    return tier


def _does_not_hold(tier: Tier, what: str) -> str:
    return (
        f'the sandbox tier "{tier.name}" does not hold here: a program reached {what} of this '
        "machine"
    )


def _run(sandbox: Sandbox, program: str, test: str) -> Verdict:
    return sandbox.run(Job(program, (test,)), _TIMEOUT_S)


@contextmanager
def _bait() -> Iterator[tuple[int, Path]]:
    """Listen on a port and make a folder that a program would like to reach."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        tempfile.TemporaryDirectory(prefix="cbench-proof-") as folder,
    ):
        yield server.getsockname()[1], Path(folder)
