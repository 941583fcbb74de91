"""Findings of doctor and `store check`: what was checked, what was found, and how to fix it."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from cbench_server.cli.exits import FAILED, OK

Status = Literal["ok", "warn", "fail"]

_COLOURS = {"ok": "32", "warn": "33", "fail": "31"}


@dataclass(frozen=True)
class Finding:
    """One line: what was checked, what was found, and how to fix it if that is bad."""

    status: Status
    subject: str
    message: str
    fix: str = ""


def tell_findings(findings: Iterable[Finding], output: str) -> int:
    """Print each as it is found, or all as JSON; one that failed makes the exit code 1."""
    from cbench_server.cli.screen import print_json

    found = []
    for finding in findings:
        found.append(finding)
        if output == "table":
            _show(finding)
    if output == "json":
        print_json([asdict(finding) for finding in found])
    return FAILED if any(finding.status == "fail" for finding in found) else OK


def _show(finding: Finding) -> None:
    from cbench_server.cli.screen import is_coloured
    from cbench_server.texts.grid import printable

    status = f"{finding.status:<4}"
    if is_coloured(sys.stdout):
        status = f"\033[{_COLOURS[finding.status]}m{status}\033[0m"
    print(f"{status}  {printable(finding.subject)}: {printable(finding.message)}")
    if finding.fix:
        print(f"      {printable(finding.fix)}")


def store_findings(home: Path, address: str = "") -> Iterator[Finding]:
    """Read all of a store: everything in it is what was written."""
    from cbench_server.errors import StoreError
    from cbench_server.storage.inspection import Inspection

    inspection = Inspection()
    is_sound = True
    try:
        for damage in inspection.of_store(home, address):
            is_sound = is_sound and not damage.is_certain
            status: Status = "fail" if damage.is_certain else "warn"
            yield Finding(status, damage.subject, damage.message, damage.fix)
    except StoreError as error:
        is_sound = False
        page = "docs/postgresql.md" if address else "docs/operations.md"
        yield Finding("fail", "store", str(error), f"{page} says what a store needs.")
    if is_sound:
        yield Finding(
            "ok",
            "store",
            f"all is what was written: {inspection.runs:,} runs, {inspection.events:,} events, "
            f"{inspection.examples:,} examples, {inspection.uploads:,} uploads",
        )
