"""`cbench doctor`: is everything in place, and if not, what to do."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict

from cbench_server.cli.checks import CHECKS, Finding, Setup
from cbench_server.cli.exits import FAILED, OK
from cbench_server.cli.screen import print_json
from cbench_server.config import BadSetting, Settings, data_home, load_settings
from cbench_server.reports.grid import printable

_COLOURS = {"ok": "32", "warn": "33", "fail": "31"}


def doctor(args: argparse.Namespace) -> int:
    """Carry out every check; a failed one makes the exit code 1."""
    findings = []
    for finding in _findings():
        findings.append(finding)
        if args.output == "table":
            _print(finding)
    if args.output == "json":
        print_json([asdict(finding) for finding in findings])
    return FAILED if any(finding.status == "fail" for finding in findings) else OK


def _findings() -> Iterator[Finding]:
    try:
        settings = load_settings({})
    except BadSetting as error:
        settings = Settings()
        fix = "Correct the CBENCH_ variable or the file CBENCH_CONFIG names."
        yield Finding("fail", "settings", str(error), fix)
    setup = Setup(settings, data_home(settings.home))
    for check in CHECKS:
        yield from check(setup)


def _print(finding: Finding) -> None:
    status = f"{finding.status:<4}"
    if sys.stdout.isatty():
        status = f"\033[{_COLOURS[finding.status]}m{status}\033[0m"
    print(f"{status}  {finding.subject}: {printable(finding.message)}")
    if finding.fix:
        print(f"      {printable(finding.fix)}")
