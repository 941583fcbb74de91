"""Messages between a daemon and its Ray driver, and between the driver and its actors."""

import msgspec

SANDBOX = "cbench_sandbox"
"""The resource that a node offers once `cbench doctor --node` has passed there."""


class Settings(msgspec.Struct):
    """What a driver is started with."""

    address: str
    """`local`, `auto` or HOST:PORT."""
    most_seats: int
    """Actors in all; 0 means one for each CPU that the cluster offers."""
    call_timeout: float
    """Seconds per pair."""
    policy: str
    """How programs under test are locked in, at least."""


class Asked(msgspec.Struct, array_like=True):
    """One pair to score."""

    number: int
    evaluator: str
    runs_programs: bool
    request: bytes
    """As a worker program takes it (scoring/messages.py)."""


class Scored(msgspec.Struct, array_like=True):
    """What came of one pair on a node."""

    reply: bytes = b""
    """As a worker program gives it."""
    unscorable: str = ""
    """Why there is none: what was scored took its scorers down."""


class Told(msgspec.Struct, array_like=True, tag="told"):
    """The answer to one Asked."""

    number: int
    scored: Scored | None = None
    away: str = ""
    """Why nobody could be asked."""
    repeats: int = 0
    """How often it was begun again, since a node or an actor was lost."""


class News(msgspec.Struct, array_like=True, tag="news"):
    """How the cluster stands, whenever that changes."""

    seats: int
    """Actors that score."""
    sandboxed: int
    """Those of them that run programs under test."""
    said: str = ""
    """What happened, for the log."""


class Hello(msgspec.Struct, array_like=True):
    """What an actor says of itself before it is given anything."""

    version: str
    sandbox_problem: str
    """Why it cannot lock programs in; empty if it can."""


class Batch(msgspec.Struct, array_like=True):
    """What an actor made of a batch."""

    scored: list[Scored]
    seconds: float
    """How long it worked."""


class Wanted(msgspec.Struct):
    """A program to start on some node."""

    words: list[str]
    folder: str
    """Where it is run; nodes have it under the same name."""
    environment: dict[str, str]
    resources: dict[str, float]
    """What it takes of its node: CPU, GPU, memory in bytes, and others by their names."""


class Printed(msgspec.Struct, tag=True):
    """Something that a launched program printed."""

    stream: int
    """1 or 2."""
    data: bytes


class Listens(msgspec.Struct, tag=True):
    """Where a launched program can be reached."""

    target: str
    is_here: bool
    """Whether it runs on the node of those who launched it."""


NO_PLACE = 70
"""The code of a program that could not be started anywhere."""


class Ended(msgspec.Struct, tag=True):
    """The end of a launched program."""

    code: int
    why: str = ""
    """What it could not say itself: its node was lost, or none could be had."""


Said = Printed | Listens | Ended
"""What is told of a launched program, from the actor to who launched it."""
