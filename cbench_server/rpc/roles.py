"""Roles of tokens, and the roles that each RPC asks for: the one table."""

from collections.abc import Iterable

from cbench_server.runs.callers import ADMIN

ROLES = {
    "read": "list runs, follow them, and read their rows with the references",
    "score": "score pairs that the caller sends",
    "run": "start runs, upload examples, and change or delete its own runs; read and score",
    "attach": "attach systems under the names listed with the token; reads nothing",
    ADMIN: "everything",
}
"""What each role is for, in the words of `cbench tokens`."""

EVERYONE = frozenset({"everyone"})
"""Open to callers without a token: nothing of their messages is read."""
ANYONE = frozenset(ROLES)
"""Open to every token."""
_ADMIN = frozenset({ADMIN})
_READ = frozenset({"read"})
_RUN = frozenset({"run"})
_SCORE = frozenset({"score"})

METHODS: dict[str, frozenset[str]] = {
    "/cbench.v1.Bench/Evaluate": _RUN,
    "/cbench.v1.Bench/WatchRun": _READ,
    "/cbench.v1.Bench/GetRun": _READ,
    "/cbench.v1.Bench/ListRuns": _READ,
    "/cbench.v1.Bench/ListRows": _READ,
    "/cbench.v1.Bench/CancelRun": _RUN,
    "/cbench.v1.Bench/ResumeRun": _RUN,
    "/cbench.v1.Bench/DeleteRun": _RUN,
    "/cbench.v1.Bench/PinRun": _RUN,
    "/cbench.v1.Bench/PruneRuns": _ADMIN,
    "/cbench.v1.Bench/Rescore": _RUN,
    "/cbench.v1.Bench/ExplainWait": _RUN,
    "/cbench.v1.Bench/Compare": _READ,
    "/cbench.v1.Bench/Gate": _READ,
    "/cbench.v1.Bench/Report": _READ,
    "/cbench.v1.Bench/Export": _READ,
    "/cbench.v1.Bench/Import": _RUN,
    "/cbench.v1.Bench/UploadExamples": _RUN,
    "/cbench.v1.Bench/ListComponents": _READ | _SCORE,
    "/cbench.v1.Evaluator/Describe": _READ | _SCORE,
    "/cbench.v1.Evaluator/Score": _SCORE,
    "/cbench.v1.Evaluator/ScoreStream": _SCORE,
    "/cbench.v1.Gateway/Attach": frozenset({"attach"}),
    "/grpc.health.v1.Health/Check": EVERYONE,
    "/grpc.health.v1.Health/List": ANYONE,
    "/grpc.health.v1.Health/Watch": EVERYONE,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": ANYONE,
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": ANYONE,
}
"""Which roles open which RPC; one of them is enough. What is not here is for admins."""

_INCLUDED = {"run": ("read", "score"), ADMIN: tuple(ROLES)}


def with_included(roles: Iterable[str]) -> frozenset[str]:
    """Return roles with those that they include."""
    given = frozenset(roles)
    return given.union(*(_INCLUDED.get(role, ()) for role in given))


def is_open_to(method: str, roles: frozenset[str]) -> bool:
    """Whether roles, the included ones among them, open an RPC."""
    asked = METHODS.get(method, frozenset({ADMIN}))
    return asked is EVERYONE or bool(asked & roles)
