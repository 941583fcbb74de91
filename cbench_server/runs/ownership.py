"""Ownership of runs: who may change one, and the epoch by which a former owner is told from it.

A run has one owner at a time. Each time a run is claimed its epoch grows, and
every commit of the owner carries the claim: a store refuses one whose epoch has
passed, with LostClaim, so that a process which slept through its own end changes
nothing. How a claim is kept is the store's affair: storage/ has the one we ship.
"""

import os
import socket
from dataclasses import dataclass
from typing import Protocol


def process_name() -> str:
    """How this process is called among those that share a store."""
    return f"{socket.gethostname()}, process {os.getpid()}"


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to change one run, until it is released or lost."""

    run_id: str
    epoch: int
    """Greater than that of every claim to the run before."""


class Ownership(Protocol):
    """Claims to runs. A claim dies with the process that holds it."""

    async def acquire(self, run_id: str) -> Claim | None:
        """Claim a run; None while another claim to it stands, here or elsewhere.

        Raises UnknownRun for what cannot be the id of a run.
        """
        ...

    async def renew(self, claim: Claim) -> bool:
        """Keep a claim; False once it is lost. Owners ask every few seconds."""
        ...

    async def release(self, claim: Claim) -> None:
        """Give a claim back; does nothing if it is lost."""
        ...

    def is_mine(self, run_id: str) -> bool:
        """Tell whether this process has a claim to the run."""
        ...
