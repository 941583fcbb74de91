"""`python -m cbench_server.bridges`: serves, or attaches, what a command or a URL answers."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cbench_client import Attachment, Refused, Tls, serve
from cbench_client.host.background import ending_on_signals, wait_until_done
from cbench_server.bridges import TOKEN_VARIABLE
from cbench_server.bridges.endpoint import Endpoint, listens
from cbench_server.bridges.exchange import Exchange
from cbench_server.bridges.once import ProgramPerRequest
from cbench_server.bridges.program import Program, leave
from cbench_server.bridges.systems import BridgedMemory, BridgedSystem

_LOOK_EVERY_S = 0.5


def parser() -> argparse.ArgumentParser:
    """Return the parser; `cli/bridges.py` writes such command lines."""
    made = argparse.ArgumentParser(prog="python -m cbench_server.bridges")
    made.add_argument("--name", required=True)
    made.add_argument("--version", default="")
    made.add_argument("--kind", choices=("system", "memory"), default="system")
    made.add_argument("--concurrency", type=int)
    made.add_argument("--attach", metavar="SERVER", help="attach to a daemon instead of serving")
    made.add_argument("--tls", action="store_true")
    for name in ("ca", "cert", "key"):
        made.add_argument(f"--tls-{name}")
    ways = made.add_subparsers(dest="way", required=True)
    program = ways.add_parser("exec")
    program.add_argument("--mode", choices=("stream", "once"), default="stream")
    program.add_argument("words", nargs="+")
    web = ways.add_parser("http")
    web.add_argument("--timeout", type=float)
    web.add_argument("--batch", type=int, default=1)
    web.add_argument("--token-variable", default="")
    web.add_argument("url")
    return made


def exchange_of(args: argparse.Namespace) -> Exchange:
    """Open what is to be asked; its end is the end of this process."""
    if args.way == "http":
        while not listens(args.url):
            print(f"waiting for {args.url}, where nobody listens yet", file=sys.stderr)
            time.sleep(_LOOK_EVERY_S)
        key = os.environ.get(args.token_variable, "") if args.token_variable else ""
        return Endpoint(
            args.url,
            timeout=args.timeout,
            batch=args.batch,
            headers={"authorization": f"Bearer {key}"} if key else {},
            gone=partial(leave, code=1),
        )
    if args.mode == "once":
        return ProgramPerRequest(args.words)
    made = Program(args.words, leave)
    made.start()
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve or attach until told to end."""
    args = parser().parse_args(arguments)
    # The token is for the daemon, and never for a program under test.
    token = os.environ.pop(TOKEN_VARIABLE, "")
    try:
        exchange = exchange_of(args)
    except OSError as error:
        print(f"cannot start {args.words[0]}: {error.strerror}", file=sys.stderr)
        return 127
    made: Any = BridgedMemory if args.kind == "memory" else BridgedSystem
    system = made(exchange, args.name, args.version, _description(args), args.concurrency)
    try:
        if args.attach:
            _attach(system, args, token)
        else:
            serve(system)
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        exchange.close()
    return 0


def _attach(system: Any, args: argparse.Namespace, token: str) -> None:
    ca, cert, key = (
        Path(path).read_bytes() if path else None
        for path in (args.tls_ca, args.tls_cert, args.tls_key)
    )
    tls = Tls(ca_pem=ca, cert_pem=cert, key_pem=key) if args.tls or ca or cert else None
    attachment = Attachment(system, args.attach, tls=tls, token=token or None)
    with ending_on_signals(attachment.begin_to_stop), attachment:
        attachment.wait_attached()
        print(f"cbench|1|attached|{system.name}", flush=True)
        wait_until_done(attachment.ended)
        attachment.ended.result()


def _description(args: argparse.Namespace) -> str:
    if args.way == "http":
        return f"asked at {args.url}"
    return f"a program, asked by lines of JSON: {Path(args.words[0]).name}"


if __name__ == "__main__":
    # A program that has ended must not end the bridge by a write to it.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.exit(main())
