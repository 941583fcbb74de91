"""Live names for completion: runs, attached systems, and the options that systems announce.

Processes that serve are asked; nothing is started for a suggestion, so what a --launch would take
is not known here.
"""

import asyncio
import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbench_client import BenchClient

_RUNS_SHOWN = 50
_LAST = "last"
# A person waits at the prompt.
_ANSWER_SECONDS = 2.0

Options = tuple[str, ...]


def runs(before: list[str]) -> Iterator[str]:
    """Yield `last` and the newest runs of the daemon that is named, or of the store here."""
    yield _LAST
    if server := _server(before):
        with _client(server) as client:
            yield from [run.run_id for run in itertools.islice(client.list(), _RUNS_SHOWN)]
        return
    from cbench_server.daemon.settings import data_home, load_settings
    from cbench_server.storage.run_ids import newest_run_ids

    yield from newest_run_ids(data_home(load_settings({}).home), _RUNS_SHOWN)


def attached(before: list[str]) -> list[str]:
    """Return what is attached to the daemon that is named."""
    server = _server(before)
    return list(_attached_options(server, _is_memory(before))) if server else []


def options(before: list[str]) -> Iterator[str]:
    """Yield the options of the systems on the line as `key=`; with their names if several."""
    found = [
        pair for flag, word in itertools.pairwise(before) for pair in _taken(flag, word, before)
    ]
    for name, keys in found:
        for key in keys:
            yield f"{key}=" if len(found) == 1 else f"{name}.{key}="


def _taken(flag: str, word: str, before: list[str]) -> list[tuple[str, Options]]:
    """Return the systems that a flag and its value name, each with its options."""
    if flag == "--builtin":
        return [(word, _builtin_options(word, _is_memory(before)))]
    if flag == "--attached" and (server := _server(before)):
        return [(word, _attached_options(server, _is_memory(before)).get(word, ()))]
    return _served_options(word, before) if flag == "--system" else []


def _builtin_options(name: str, is_memory: bool) -> Options:
    import inspect

    from cbench_server.registry import registry

    made = registry.get("memory_system" if is_memory else "system", name)
    return tuple(inspect.signature(made).parameters)


def _served_options(target: str, before: list[str]) -> list[tuple[str, Options]]:
    from cbench_client.remote.peer import split_target
    from cbench_server.cli.served import describe

    address, served = split_target(target)
    kind = "memory" if _is_memory(before) else "process"
    asked = asyncio.wait_for(describe(address, kind), _ANSWER_SECONDS)
    return [
        (each.name, each.declared.names if each.declared else ())
        for each in asyncio.run(asked)
        if served in (None, each.name)
    ]


def _attached_options(server: str, is_memory: bool) -> dict[str, Options]:
    from cbench_client.messages.options import declared_options

    with _client(server) as client:
        components = client.components()
    listed = components.memory_systems if is_memory else components.systems
    found = [each for each in listed if each.location == "attached"]
    declared = {each.name: declared_options(each) for each in found}
    return {name: taken.names if taken else () for name, taken in declared.items()}


def _is_memory(before: list[str]) -> bool:
    return before[:1] == ["memory"]


def _server(before: list[str]) -> str:
    named = [word for flag, word in itertools.pairwise(before) if flag == "--server"]
    return (named or [os.environ.get("CBENCH_SERVER", "")])[-1]


def _client(server: str) -> "BenchClient":
    from cbench_client import BenchClient

    return BenchClient(server, token=os.environ.get("CBENCH_TOKEN") or None)
