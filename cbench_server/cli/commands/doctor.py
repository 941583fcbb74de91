"""`cbench doctor`: check the setup, and say how to fix it.

To add a line, write a check and list it in `_CHECKS`.
"""

import argparse
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import add_connection_flags, server_of, tls_of, token_of
from cbench_server.cli.exits import UsageError
from cbench_server.cli.findings import Finding, Status, store_findings, tell_findings
from cbench_server.errors import CbenchError
from cbench_server.lazy_imports import EXTRAS, command_for, is_here

if TYPE_CHECKING:
    from cbench_server.daemon.settings import Settings

_PACKAGES = ("grpcio", "protobuf", "sqlalchemy", "alembic", "tiktoken", "httpx", "numpy", "rich")
_LOW_DISK = 1 << 30
_NO_DISK = 50 << 20
_RUNS_CHECKED = 5
_EVENTS_CHECKED = 500
_SAMPLE = "Context compression, measured: 1234567 tokens — <|endoftext|>"
_SAMPLE_TOKENS = {"cl100k_base": 17, "o200k_base": 18}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench doctor`."""
    parser.set_defaults(handler=doctor)
    parser.add_argument(
        "--deep",
        action="store_true",
        help="read every page, row and upload of the store, and say what can be saved",
    )
    parser.add_argument(
        "--node",
        action="store_true",
        help="check this machine as a node of a Ray cluster, and say how to start it",
    )
    options.add_output(parser)
    add_connection_flags(parser)


def doctor(args: argparse.Namespace) -> int:
    """Run every check; one that fails makes the exit code 1."""
    return tell_findings(_chosen(args), args.output)


def _chosen(args: argparse.Namespace) -> Iterator[Finding]:
    if args.node:
        from cbench_server.cli.node_doctor import node_findings

        return node_findings(_settings().sandbox)
    server = server_of(args)
    if not server:
        return _findings(args.deep)
    if args.deep:
        raise UsageError("--deep reads the store of this machine; run it where the daemon is.")
    # Imported here because it loads asyncio, which a check of this machine does without.
    from cbench_server.cli.remote_doctor import remote_findings

    return remote_findings(server, tls_of(args), token_of(args))


def _settings() -> "Settings":
    from cbench_server.daemon.settings import load_settings

    return load_settings({})


def _findings(deep: bool) -> Iterator[Finding]:
    from cbench_server.daemon.settings import BadSetting, Settings, data_home

    try:
        settings = _settings()
    except BadSetting as error:
        settings = Settings()
        fix = "Correct the CBENCH_ variable or the file CBENCH_CONFIG names."
        yield Finding("fail", "settings", str(error), fix)
    setup = Setup(settings, data_home(settings.home), deep)
    for check in _CHECKS:
        yield from check(setup)


@dataclass(frozen=True)
class Setup:
    """The setup that is checked: the daemon's settings, and where it keeps runs."""

    settings: "Settings"
    home: Path
    is_deep: bool = False


Check = Callable[[Setup], Iterator[Finding]]


def _check_python(setup: Setup) -> Iterator[Finding]:
    """The interpreter."""
    version = platform.python_version()
    if sys.version_info < (3, 11):  # noqa: UP036 - a copied tree can be run by any Python
        yield Finding("fail", "python", version, "Use Python 3.11 or newer.")
    else:
        yield Finding("ok", "python", f"{version} ({sys.executable})")


def _check_packages(setup: Setup) -> Iterator[Finding]:
    """What we depend on is installed."""
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        yield Finding(
            "fail",
            "packages",
            f"missing: {', '.join(missing)}",
            f"Install them: {sys.executable} -m pip install {' '.join(missing)}",
        )
    else:
        yield Finding("ok", "packages", ", ".join(found))


def _check_extras(setup: Setup) -> Iterator[Finding]:
    """What may be installed besides; its absence is no mistake."""
    by_extra = {extra: package for package, extra in EXTRAS.items()}
    absent = sorted(extra for extra, package in by_extra.items() if not is_here(package))
    here = sorted(by_extra.keys() - set(absent))
    message = f"installed: {', '.join(here) or 'none'}"
    if absent:
        message += f"; not installed: {', '.join(absent)} (all of them: {command_for('all')})"
    yield Finding("ok", "extras", message)


def _check_home(setup: Setup) -> Iterator[Finding]:
    """The data directory can be written."""
    try:
        setup.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=setup.home) as probe:
            probe.write(b"x")
    except OSError as error:
        yield Finding(
            "fail",
            "data directory",
            f"{setup.home} cannot be written: {error.strerror}",
            "Change its permissions, or set CBENCH_HOME to a directory that you can write.",
        )
    else:
        yield Finding("ok", "data directory", str(setup.home))


def _check_disk(setup: Setup) -> Iterator[Finding]:
    """There is room for runs."""
    place = next(path for path in (setup.home, *setup.home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    message = f"{free / (1 << 30):,.1f} GB free at {place}"
    status: Status = "fail" if free < _NO_DISK else "warn" if free < _LOW_DISK else "ok"
    fix = "" if status == "ok" else "Free some space, or delete runs: cbench runs delete RUN"
    yield Finding(status, "disk", message, fix)


def _check_store(setup: Setup) -> Iterator[Finding]:
    """The store opens, is of a version we know, and holds what was written."""
    if setup.settings.store:
        if setup.is_deep:
            yield from store_findings(setup.home, setup.settings.store)
            return
        yield from _check_sample(
            setup,
            "PostgreSQL",
            "docs/postgresql.md says what a store needs.",
            "Restore a backup: docs/postgresql.md",
        )
        return
    path = setup.home / "cbench.db"
    if not path.exists():
        yield Finding("ok", "store", "none yet; the first run makes it")
        return
    if not os.access(path, os.R_OK | os.W_OK):
        yield Finding(
            "fail", "store", f"{path} cannot be written", "Change its permissions or owner."
        )
    if not os.access(path, os.R_OK):
        return
    if setup.is_deep:
        yield from store_findings(setup.home)
        return
    from cbench_server.storage.schema import HEAD_REVISION

    yield from _check_sample(
        setup,
        f"{path}, {path.stat().st_size / (1 << 20):,.1f} MB, schema {HEAD_REVISION}",
        f"If it is damaged, move {path} away and keep it: the next run makes a new, empty one.",
        "Look for more, and what can be saved: cbench doctor --deep",
    )


def _check_sample(setup: Setup, store: str, if_unread: str, if_damaged: str) -> Iterator[Finding]:
    """The newest runs can be read; else one of two things is to be done."""
    import asyncio

    try:
        runs, events, damaged = asyncio.run(_read_sample(setup))
    except CbenchError as error:
        yield Finding("fail", "store", str(error), if_unread)
        return
    for each in damaged:
        yield Finding("fail", "store", each, if_damaged)
    if not damaged:
        message = (
            f"{store}; checked {events:,} events of the newest {runs} runs (all of it: cbench "
            "doctor --deep)"
        )
        yield Finding("ok", "store", message)


async def _read_sample(setup: Setup) -> tuple[int, int, list[str]]:
    from cbench_server.errors import DamagedRun
    from cbench_server.storage.opening import open_store

    store = open_store(setup.home, setup.settings.store)
    try:
        runs = await store.list_runs(limit=_RUNS_CHECKED)
        damaged = [run.damage for run in runs if run.damage]
        events = 0
        for run in runs:
            if not run.damage:
                try:
                    events += len(await store.read_events(run.run_id, 0, limit=_EVENTS_CHECKED))
                except DamagedRun as error:
                    damaged.append(str(error))
        return len(runs), events, damaged
    finally:
        await store.close()


def _check_tokenizers(setup: Setup) -> Iterator[Finding]:
    """Both vocabularies load, without a network, and count right."""
    from cbench_server.tokens import count_tokens

    for name, expected in _SAMPLE_TOKENS.items():
        try:
            counted = count_tokens(_SAMPLE, name)
        except (CbenchError, OSError) as error:
            yield Finding("fail", "tokenizer", f"{name}: {error}", "Install cbench-server again.")
            continue
        if counted == expected:
            yield Finding("ok", "tokenizer", f"{name} counts right")
        else:
            yield Finding(
                "fail",
                "tokenizer",
                f"{name} counts {counted} tokens where there are {expected}",
                "Install tiktoken and cbench-server again.",
            )


def _check_port(setup: Setup) -> Iterator[Finding]:
    """The daemon's port is free, or a daemon is there."""
    address = setup.settings.address
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or port == "0":
        yield Finding("ok", "port", f"{address}; nothing to check")
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
    except OSError:
        yield Finding("ok", "port", f"{address} is free; start a daemon with: cbench-server")
        return
    yield _who_answers(address)


def _who_answers(address: str) -> Finding:
    from cbench_client import BenchClient, ClientError

    try:
        with BenchClient(address, timeout=3) as client:
            version = client.components().server_version
    except ClientError as error:
        if error.advice in ("PRESENT_TOKEN", "USE_TLS"):
            return Finding(
                "ok", "port", f"{address} is in use by a server that wants TLS or a token"
            )
        return Finding(
            "warn",
            "port",
            f"{address} is taken, but not by a cbench daemon: {error.problem}",
            "Start the daemon elsewhere: cbench-server --address 127.0.0.1:0",
        )
    return Finding("ok", "port", f"a cbench daemon, version {version}, answers at {address}")


def _check_sandbox(setup: Setup) -> Iterator[Finding]:
    """Programs under test are locked in."""
    from cbench_server.cli.node_doctor import sandbox_finding

    yield sandbox_finding(setup.settings.sandbox)


_CHECKS: tuple[Check, ...] = (
    _check_python,
    _check_packages,
    _check_extras,
    _check_home,
    _check_disk,
    _check_store,
    _check_tokenizers,
    _check_sandbox,
    _check_port,
)
