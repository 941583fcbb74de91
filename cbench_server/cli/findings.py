"""Findings of `cbench doctor`: what was checked, what was found, and how to fix it."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Status = Literal["ok", "warn", "fail"]

_COLOURS = {"ok": "32", "warn": "33", "fail": "31"}


@dataclass(frozen=True)
class Finding:
    """One line: what was checked, what was found, and how to fix it if that is bad."""

    status: Status
    subject: str
    message: str
    fix: str = ""


def show_finding(finding: Finding) -> None:
    """Print one, with how to fix it."""
    from cbench_server.cli.screen import is_coloured
    from cbench_server.texts.grid import printable

    status = f"{finding.status:<4}"
    if is_coloured(sys.stdout):
        status = f"\033[{_COLOURS[finding.status]}m{status}\033[0m"
    print(f"{status}  {finding.subject}: {printable(finding.message)}")
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
        yield Finding("fail", "store", str(error), "docs/postgresql.md says what a store needs.")
    if is_sound:
        yield Finding(
            "ok",
            "store",
            f"all is what was written: {inspection.runs:,} runs, {inspection.events:,} events, "
            f"{inspection.examples:,} examples, {inspection.uploads:,} uploads",
        )
