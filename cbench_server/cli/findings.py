"""Findings of `cbench doctor`: what was checked, what was found, and how to fix it."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One line: what was checked, what was found, and how to fix it if that is bad."""

    status: Status
    subject: str
    message: str
    fix: str = ""
