"""Command lines of bridges: how `--exec` and `--http` become systems that are launched.

A bridge is a process of its own that serves what a program or a web server answers. A daemon
elsewhere cannot dial it, so there it attaches. The run's spec names its address or its name, and
never a command.
"""

import argparse
import hashlib
import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from cbench_server.bridges import TOKEN_VARIABLE
from cbench_server.cli.connect import server_of
from cbench_server.cli.exits import UsageError
from cbench_server.cli.launch import BRIDGE, command_words, is_bridge, label_of
from cbench_server.limits import MAX_NAME

_MAX_DIGESTED = 64 * 1024 * 1024


def bridge_command(args: argparse.Namespace, kind: str, value: str, name: str) -> str:
    """Return the command that starts a bridge; its name and what it is called are the same."""
    server = server_of(args)
    words = [sys.executable, *BRIDGE, "--kind", "memory" if args.kind == "memory" else "system"]
    # Another process may have attached something of that name.
    tail = f"-{secrets.token_hex(4)}" if server else ""
    words += ["--name", f"{name[: MAX_NAME - len(tail)]}{tail}"]
    if server:
        words += ["--attach", server]
        words += ["--tls"] if args.tls else []
        for flag in ("tls_ca", "tls_cert", "tls_key"):
            if path := vars(args)[flag]:
                words += [f"--{flag.replace('_', '-')}", str(Path(path).resolve())]
    return shlex.join(words + (_exec if kind == "exec" else _http)(args, value))


def _exec(args: argparse.Namespace, command: str) -> list[str]:
    given = command_words(command)
    folder: Path = vars(args).get("folder") or Path()
    program = str(folder / given[0]) if "/" in given[0] else given[0]
    if shutil.which(program) is None:
        raise UsageError(f"--exec {command}: there is no program {given[0]} to run.")
    limit = args.exec_concurrency
    if args.exec_mode == "once" and limit is None:
        limit = os.cpu_count() or 1
    return [
        *("--version", _digest(given, folder)),
        *(("--concurrency", str(limit)) if limit else ()),
        *("exec", "--mode", args.exec_mode, "--", *given),
    ]


def _http(args: argparse.Namespace, url: str) -> list[str]:
    if args.http_token_env and not os.environ.get(args.http_token_env):
        raise UsageError(f"--http-token-env {args.http_token_env}: there is no such variable.")
    limit = args.http_concurrency
    return [
        *(("--concurrency", str(limit)) if limit else ()),
        *("http", "--batch", str(args.http_batch), "--token-variable", args.http_token_env),
        *(("--timeout", str(args.http_timeout)) if args.http_timeout else ()),
        url,
    ]


def bridge_label(kind: str, value: str) -> str:
    """Return what to call a system whose name is not given."""
    if kind == "exec":
        return label_of(value)
    check_http(value)
    _check_listens(value)
    return urlsplit(value).netloc.rpartition("@")[2]


def check_http(url: str) -> None:
    """Refuse what is no address of a web server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"--http {url} is not a URL; give one such as http://localhost:8000/process"
        )


def environment_of(command: str, token: str) -> dict[str, str]:
    """Return what a launched process is told besides what this one knows."""
    return {TOKEN_VARIABLE: token} if token and is_bridge(command) else {}


def _check_listens(url: str) -> None:
    from cbench_server.bridges.endpoint import listens

    if not listens(url):
        raise UsageError(f"nobody listens at {url}. Start the server first, or mend the address.")


def _digest(words: list[str], folder: Path) -> str:
    """Tell versions of a program apart by its words and the files among them."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode(errors="surrogateescape") + b"\0")
        path = folder / word
        if path.is_file() and path.stat().st_size <= _MAX_DIGESTED:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
