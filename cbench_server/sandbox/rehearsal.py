"""A rehearsal: one program and its tests, run by the zygote itself before it forks.

Much of what a process does for the first time leaves something behind: caches
of types and methods, specialised code, tables of patterns. A fork inherits
those and writes to fewer of the pages that it shares with its zygote.
"""

import contextlib
import os
import socket
import sys

from cbench_server.sandbox import candidate, tester
from cbench_server.sandbox.wire import Closed, send

_PROMPT = 'from typing import List\n\ndef add(a: int, b: List[int]) -> int:\n    """Add."""\n'
_JOB = {
    "prompt": _PROMPT,
    "response": "```python\ndef add(a, b):\n    return a + sum(b)\n```",
    "tests": ["def check(add):\n    assert add(1, [2]) == 3\n    assert add(1, b=[]) == 1\n"],
    "entry_point": "add",
    "imports": [],
    "setup": "",
}
_PROGRAM = {**_JOB, "wanted": ["add"]}
_QUESTIONS = (
    {"ask": "name", "name": "add"},
    {"ask": "call", "handle": 1, "arguments": [1, {"list": [2]}], "named": {}},
    {"ask": "call", "handle": 1, "arguments": [1], "named": {"b": {"list": []}}},
    {"ask": "ping", "arguments": []},
)
_ANSWERS = (
    {"ready": True},
    {"value": {"handle": 1, "kind": "function"}},
    {"value": 3},
    {"value": 1},
    {"value": None},
)
# Python specialises what has been run this often.
_TIMES = 9


def rehearse() -> None:
    """Play both parts, each against what the other would say, and leave no trace."""
    for _ in range(_TIMES):
        _test()
        _be_judged()


def _test() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for answer in _ANSWERS:
            send(theirs.fileno(), answer)
        verdict = tester.run(ours, 1, dict(_JOB))
    assert verdict["passed"], verdict


def _be_judged() -> None:
    ours, theirs = socket.socketpair()
    output = os.dup(1), os.dup(2)
    stdout = sys.stdout
    with ours, theirs:
        socket.send_fds(theirs, [b"."], [1])
        for message in (_PROGRAM, *_QUESTIONS):
            send(theirs.fileno(), message)
        theirs.shutdown(socket.SHUT_WR)
        try:
            with contextlib.suppress(Closed):
                candidate.serve(ours)
        finally:
            sys.stdout = stdout
            sys.modules.pop("solution", None)
            for standard, kept in enumerate(output, 1):
                os.dup2(kept, standard)
                os.close(kept)
