"""The tester's side: runs the tests against proxies, and alone says whether they passed."""

import ast
import builtins
import contextlib
import importlib
import socket
import sys
from collections.abc import Sequence
from types import CodeType
from typing import Any

from cbench_server.sandbox.assembly import shared_setup
from cbench_server.sandbox.peer import CandidateLost, Peer
from cbench_server.sandbox.wire import Message

_MAX_TEXT = 2000


def run(connection: socket.socket, output: int, job: Message) -> Message:
    """Run a job's tests against the candidate at the other end and return the verdict."""
    peer = Peer(connection.fileno())
    try:
        reason, text = _run(peer, connection, output, job)
    except CandidateLost:
        reason, text = _why_lost(peer)
    except BaseException as error:
        reason, text = _why_failed(peer, error)
    if peer.lost:
        reason, text = _why_lost(peer)
    integrity = "partial" if peer.asked_about_itself else "split"
    return {
        "passed": reason == "",
        "reason": reason,
        "message": text[:_MAX_TEXT],
        "calls": peer.calls,
        "integrity": integrity,
    }


def _run(peer: Peer, connection: socket.socket, output: int, job: Message) -> tuple[str, str]:
    try:
        tests = [compile(each, "tests.py", "exec", dont_inherit=True) for each in job["tests"]]
        entry = job["entry_point"]
        called = [] if entry else _called(_nodes(job["tests"]))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return "bad_tests", f"the tests are not valid Python: {error}"
    wanted = [entry] if entry else _unknown(called) or called
    socket.send_fds(connection, [b"."], [output])
    program = {
        "prompt": job["prompt"],
        "response": job["response"],
        "setup": "\n".join(filter(None, [*job["imports"], shared_setup(job["setup"])])),
        "wanted": wanted,
    }
    begun = peer.start(program)
    if "not_python" in begun:
        return "not_python", "no reading of the response compiles"
    if "ready" not in begun:
        return _why_failed(peer, peer.error(begun.get("error")))
    names = _Names(peer, job["tests"], ["check"] if entry else [])
    _prepare(names, job)
    try:
        function = peer.name(entry) if entry else None
    except KeyError:
        return "undefined", f"the response does not define {entry}"
    if entry:
        names[entry] = function
    elif not _unknown(called):
        _let_redefine(names, peer, called)
    for test in tests:
        exec(test, names)
    check = names.get("check")
    if entry and check is not None and check is not function:
        check(function)
    if not peer.calls:
        return "not_called", "the tests never called the response"
    # It must still be there, and still keep to the protocol.
    peer.ask("ping")
    return "", ""


def _let_redefine(names: "_Names", peer: Peer, called: Sequence[str]) -> None:
    """Take builtins from the candidate: tests that name nothing else must mean its own."""
    for name in called:
        with contextlib.suppress(KeyError):
            names[name] = peer.name(name)


def _prepare(names: "_Names", job: Message) -> None:
    """Give the tests what surrounds them; classes stay the candidate's, who gets instances."""
    for source in filter(str.strip, ("\n".join(job["imports"]), job["prompt"], job["setup"])):
        for attempt in (source, f"{source}\n    pass\n"):
            try:
                code = _without_classes(attempt)
            except (SyntaxError, ValueError):
                continue
            exec(code, names)
            break


def _without_classes(source: str) -> CodeType:
    if "class" not in source:
        return compile(source, "setup.py", "exec", dont_inherit=True)
    tree = ast.parse(source)
    tree.body = [each for each in tree.body if not isinstance(each, ast.ClassDef)]
    return compile(tree, "setup.py", "exec", dont_inherit=True)


class _Names(dict[str, Any]):
    """The tests' namespace, where a name that is not defined is the candidate's."""

    def __init__(self, peer: Peer, tests: Sequence[str], ours: list[str]) -> None:
        super().__init__({"__builtins__": builtins, "__name__": "tests"})
        self._peer = peer
        self._tests = tests
        self._ours = ours

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) or name in self._ours:
            raise KeyError(name)
        # "math.isclose" means the module, not what a candidate has under its name.
        is_module = name in sys.stdlib_module_names and name in _module_uses(_nodes(self._tests))
        value = importlib.import_module(name) if is_module else self._peer.name(name)
        self[name] = value
        return value


def _nodes(sources: Sequence[str]) -> list[ast.AST]:
    return [node for source in sources for node in ast.walk(ast.parse(source))]


def _called(nodes: Sequence[ast.AST]) -> list[str]:
    """Return the names that the tests call and do not bind, in order."""
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and _is_store(node)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {
        (each.asname or each.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for each in node.names
    }
    called = [
        node.func.id
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return [name for name in dict.fromkeys(called) if name not in bound]


def _unknown(called: Sequence[str]) -> list[str]:
    return [name for name in called if not hasattr(builtins, name)]


def _module_uses(nodes: Sequence[ast.AST]) -> set[str]:
    return {
        node.value.id
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }


def _is_store(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _why_lost(peer: Peer) -> tuple[str, str]:
    if peer.lost.startswith(("Closed", "ConnectionResetError", "BrokenPipeError")):
        return "exited_early", "the program ended before its tests did"
    return "protocol", f"the program's answers cannot be read: {peer.lost}"


def _why_failed(peer: Peer, error: BaseException) -> tuple[str, str]:
    text = f"{type(error).__name__}: {_say(error)}"
    if isinstance(error, MemoryError):
        return "memory", text
    if isinstance(error, SystemExit):
        return "exited_early", text
    if error is peer.raised:
        return "raised", text
    return "wrong_answer", text


def _say(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "?"
