"""`cbench conformance`: check that a process keeps the contract."""

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cbench_server import __version__
from cbench_server.cli import options
from cbench_server.cli.exits import FAILED, OK, CommandFailed, UsageError, did_you_mean
from cbench_server.cli.files import read_text, write_file
from cbench_server.cli.screen import draw, print_json
from cbench_server.cli.values import duration
from cbench_server.texts.grid import Grid, printable

if TYPE_CHECKING:
    from cbench_server.conformance.cases import Case
    from cbench_server.conformance.runner import Result

_AREAS = ("system", "memory", "evaluator")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench conformance`."""
    parser.epilog = (
        "After -- comes the command that starts the process; it prints cbench|1|tcp|HOST:PORT."
    )
    parser.set_defaults(handler=conformance)
    parser.add_argument(
        "program",
        metavar="COMMAND",
        nargs="*",
        help="after `--`: the command to start what is checked, with its arguments",
    )
    for name, what in (
        ("system", "systems"),
        ("memory", "memory systems"),
        ("evaluator", "evaluators"),
    ):
        parser.add_argument(f"--{name}", metavar="TARGET", help=f"check the {what} at HOST:PORT")
    _add_selection(parser)
    _add_connection(parser)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        help="only cases under this path, such as system/unary or '*/cancel/*'; repeatable",
        **options.REPEATABLE,
    )
    parser.add_argument(
        "--profile",
        choices=("sdk", "bare"),
        default="sdk",
        help="bare asks a process built without an SDK what a gRPC library alone can do "
        "(default: sdk)",
    )
    parser.add_argument("--list", action="store_true", help="list the cases, and check nothing")
    parser.add_argument(
        "--known-failing",
        metavar="FILE",
        help="cases that may fail, one per line, each with its reason after a #; a listed case "
        "that passes fails the check",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        default=30.0,
        help="the time limit of one case (default: 30s)",
    )
    options.add_output(parser)
    parser.add_argument("--junit", metavar="FILE", help="also write a JUnit report")


def _add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connection to TARGET")
    group.add_argument("--token", help="the bearer token that the process asks for")
    group.add_argument("--tls", action="store_true", help="connect over TLS")
    group.add_argument(
        "--tls-ca",
        metavar="FILE",
        help="connect over TLS and trust the certificates in this PEM file",
    )


def conformance(args: argparse.Namespace) -> int:
    """Run the cases; one that fails, or passes unexpectedly, makes the exit code 1."""
    import asyncio

    from cbench_server.conformance.cases import asked_of, load_cases, select
    from cbench_server.conformance.reports import as_document, as_grid, as_junit, as_lines

    cases = asked_of(args.profile, load_cases())
    chosen = select(cases, args.only)
    if not chosen:
        raise UsageError(
            f'no case of the profile {args.profile} matches "{args.only[0]}". '
            f"List them with: cbench conformance --profile {args.profile} --list"
        )
    if args.list:
        return _list(chosen, args.output)
    known = _known_failing(args.known_failing, cases)
    targets = _targets(args)
    results, sdk = asyncio.run(_check_all(args, targets, chosen, known))
    is_bad = any(result.is_bad for result in results)
    if args.junit:
        write_file(args.junit, [as_junit(results, sdk)])
    if args.output == "json":
        print_json(as_document(results, sdk, __version__))
    else:
        print(draw(as_grid(results)))
        other = printable(sdk) or "a process that does not name its SDK"
        print(f"\ncbench {__version__} with {other}")
        for line in as_lines(results):
            print(line)
        if is_bad and not sdk and args.profile == "sdk":
            print("Built without an SDK? --profile bare asks what a gRPC library alone can do.")
    return FAILED if is_bad else OK


def _list(cases: list["Case"], output: str) -> int:
    if output == "json":
        print_json([{"name": case.name, "says": case.says} for case in cases])
    else:
        rows = tuple((case.name, case.says) for case in cases)
        print(draw(Grid(("case", "says"), rows, frozenset({1}))))
    return OK


def _targets(args: argparse.Namespace) -> dict[str, set[str]]:
    """Return the areas to check at each target; the empty target is the command."""
    targets: dict[str, set[str]] = {}
    for area in _AREAS:
        if target := getattr(args, area):
            targets.setdefault(target, set()).add(area)
    if args.program and targets:
        raise UsageError("give a target or a command after --, not both.")
    if args.program:
        return {"": {*_AREAS, "server", "attach"}}
    if not targets:
        raise UsageError(
            "nothing to check. Pass --system HOST:PORT, or -- and the command that starts it."
        )
    for areas in targets.values():
        areas.update(("server", "attach"))
    return targets


async def _check_all(
    args: argparse.Namespace,
    targets: dict[str, set[str]],
    cases: list["Case"],
    known: frozenset[str],
) -> tuple[list["Result"], str]:
    # By now the suite is loaded, and has told gRPC to be quiet.
    from cbench_client.remote.channel import Tls
    from cbench_server.conformance.program import ProgramFailed
    from cbench_server.conformance.runner import run_cases
    from cbench_server.conformance.subject import Subject, Unusable

    results: list[Result] = []
    sdks: list[str] = []
    tls = Tls.from_files(args.tls_ca) if args.tls_ca else args.tls
    for target, areas in targets.items():
        subject = Subject(target=target, command=args.program, tls=tls, token=args.token)
        try:
            async with subject:
                wanted = [case for case in cases if case.area in areas]
                show = _Progress(len(wanted))
                results += await run_cases(
                    subject, wanted, known_failing=known, timeout_s=args.timeout, on_result=show
                )
        except (Unusable, ProgramFailed) as error:
            raise CommandFailed(str(error)) from error
        sdks.append(subject.sdk)
    return results, ", ".join(filter(None, dict.fromkeys(sdks)))


class _Progress:
    """Counts on a terminal how many cases are done."""

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self._is_shown = sys.stderr.isatty()

    def __call__(self, result: "Result") -> None:
        self._done += 1
        if self._is_shown:
            end = "\r" if self._done < self._total else "\n"
            print(f"{self._done} of {self._total} cases", end=end, file=sys.stderr, flush=True)


def _known_failing(path: str | None, cases: Iterable["Case"]) -> frozenset[str]:
    if path is None:
        return frozenset()
    names = {case.name for case in cases}
    lines = read_text(path).splitlines()
    listed = frozenset(filter(None, (line.partition("#")[0].strip() for line in lines)))
    if unknown := sorted(listed - names):
        hint = did_you_mean(unknown[0], names)
        raise UsageError(f'{path} lists "{unknown[0]}", which is not a case.{hint}')
    return listed
