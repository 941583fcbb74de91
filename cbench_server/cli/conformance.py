"""`cbench conformance`: does a process keep the contract?"""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path

from cbench_server.cli.exits import FAILED, OK, CommandFailed, UsageError, did_you_mean
from cbench_server.cli.screen import draw, print_json
from cbench_server.conformance.cases import Case, load_cases, select
from cbench_server.conformance.house import House, Unusable
from cbench_server.conformance.program import ProgramFailed
from cbench_server.conformance.reports import as_document, as_grid, as_junit, as_lines
from cbench_server.conformance.runner import Result, run_cases
from cbench_server.reports.grid import Grid
from cbench_server.version import __version__

_AREAS = ("system", "memory", "evaluator")


def conformance(args: argparse.Namespace) -> int:
    """Carry out the cases; one that fails, or passes unexpectedly, makes the exit code 1."""
    cases = load_cases()
    chosen = select(cases, args.only)
    if not chosen:
        raise UsageError(
            f'no case matches "{args.only[0]}". List them with: cbench conformance --list'
        )
    if args.list:
        return _list(chosen, args.output)
    known = _known_failing(args.known_failing, cases)
    targets = _targets(args)
    results, sdk = asyncio.run(_check_all(args, targets, chosen, known))
    if args.junit:
        Path(args.junit).write_bytes(as_junit(results, sdk))
    if args.output == "json":
        print_json(as_document(results, sdk, __version__))
    else:
        print(draw(as_grid(results)))
        print(f"\ncbench {__version__} with {sdk or 'a process that does not name its SDK'}")
        for line in as_lines(results):
            print(line)
    return FAILED if any(result.is_bad for result in results) else OK


def _list(cases: list[Case], output: str) -> int:
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
    cases: list[Case],
    known: frozenset[str],
) -> tuple[list[Result], str]:
    # Not above, where it would load gRPC before the suite has told it to be quiet.
    from cbench_client.channel import Tls

    results: list[Result] = []
    sdks: list[str] = []
    tls = Tls.from_files(args.tls_ca) if args.tls_ca else args.tls
    for target, areas in targets.items():
        house = House(target=target, command=args.program, tls=tls, token=args.token)
        try:
            async with house:
                wanted = [case for case in cases if case.area in areas]
                show = _Progress(len(wanted))
                results += await run_cases(
                    house, wanted, known_failing=known, timeout_s=args.timeout, on_result=show
                )
        except (Unusable, ProgramFailed) as error:
            raise CommandFailed(str(error)) from error
        sdks.append(house.sdk)
    return results, ", ".join(filter(None, dict.fromkeys(sdks)))


class _Progress:
    """Counts on a terminal how many cases are done."""

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self._is_shown = sys.stderr.isatty()

    def __call__(self, result: Result) -> None:
        self._done += 1
        if self._is_shown:
            end = "\r" if self._done < self._total else "\n"
            print(f"{self._done} of {self._total} cases", end=end, file=sys.stderr, flush=True)


def _known_failing(path: str | None, cases: Iterable[Case]) -> frozenset[str]:
    if path is None:
        return frozenset()
    names = {case.name for case in cases}
    lines = Path(path).read_text().splitlines()
    listed = frozenset(filter(None, (line.partition("#")[0].strip() for line in lines)))
    if unknown := sorted(listed - names):
        hint = did_you_mean(unknown[0], names)
        raise UsageError(f'{path} lists "{unknown[0]}", and there is no such case.{hint}')
    return listed
