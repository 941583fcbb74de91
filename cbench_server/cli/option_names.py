"""Options that the systems on a command line take, for the end of a line that is being typed."""

import itertools
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_client.messages.options import DeclaredOption, DeclaredOptions

Taken = tuple[str, "DeclaredOptions"]
"""The name of a component, and what it takes."""

# Whoever presses Tab does not wait for longer.
PATIENCE_SECONDS = 2.0


def of_systems(before: list[str], beginning: str) -> Iterator[str]:
    """Yield `KEY=` of each option, with the names of systems if several are on the line."""
    taken = [each for flag, word in _pairs(before) for each in _systems_of(flag, word, before)]
    is_named = len(taken) > 1 or "." in beginning.partition("=")[0]
    for name, declared in taken:
        for option in declared.options:
            yield from _written(f"{name}.{option.name}" if is_named else option.name, option)


def of_evaluators(before: list[str], _: str) -> Iterator[str]:
    """Yield `NAME.KEY=` of each option that the evaluators on the line take."""
    named = [word for flag, word in _pairs(before) if flag == "--evaluator"]
    for name, declared in itertools.chain.from_iterable(map(_evaluators_of, named)):
        for option in declared.options:
            yield from _written(f"{name}.{option.name}", option)


def client_of(before: list[str]) -> "BenchClient | None":
    """Return a client of the daemon that a line names, if it names one."""
    named = dict(_pairs(before))
    server = named.get("--server") or os.environ.get("CBENCH_SERVER", "")
    if not server:
        return None
    from cbench_client import BenchClient, Tls

    ca, cert, key = (_pem(named.get(flag)) for flag in ("--tls-ca", "--tls-cert", "--tls-key"))
    tls = Tls(ca_pem=ca, cert_pem=cert, key_pem=key)
    token = named.get("--token") or os.environ.get("CBENCH_TOKEN") or None
    is_secured = "--tls" in before or tls != Tls()
    return BenchClient(
        server, tls=tls if is_secured else None, token=token, timeout=PATIENCE_SECONDS
    )


def _pairs(before: list[str]) -> Iterator[tuple[str, str]]:
    """Yield flags with the words after them, or after their equals signs."""
    yield from itertools.pairwise(before)
    for word in before:
        flag, equals, value = word.partition("=")
        if equals and flag.startswith("--"):
            yield flag, value


def _written(key: str, option: "DeclaredOption") -> Iterable[str]:
    values = option.choices or ((True, False) if option.kind is bool else ())
    if not values:
        return [f"{key}="]
    return [f"{key}={v if isinstance(v, str) else json.dumps(v)}" for v in values]


def _systems_of(flag: str, word: str, before: list[str]) -> list[Taken]:
    with suppress(Exception):  # one that cannot be asked does not keep the others from it
        if flag == "--builtin":
            from cbench_server.registry import registry
            from cbench_server.rpc.declared_options import builtin_options

            kind = "memory_system" if before[0] == "memory" else "system"
            return [(word, builtin_options(registry, kind, word))]
        if flag == "--system":
            return _served(word, before)
        if flag == "--attached":
            return _attached(word, before)
    return []


def _served(place: str, before: list[str]) -> list[Taken]:
    """Ask a process what its systems take; one that is launched by the line is not started."""
    import asyncio

    from cbench_client import Tls
    from cbench_client.remote.peer import split_target
    from cbench_server.cli.served import describe

    target, chosen = split_target(place)
    ca = dict(_pairs(before)).get("--system-ca")
    tls = Tls(_pem(ca)) if ca or "--system-tls" in before else None
    kind = "memory" if before[0] == "memory" else "process"
    found = asyncio.run(asyncio.wait_for(describe(target, kind, tls), PATIENCE_SECONDS))
    return [
        (each.name, each.declared)
        for each in found
        if each.declared is not None and chosen in (None, each.name)
    ]


def _attached(name: str, before: list[str]) -> list[Taken]:
    from cbench_client.messages.options import declared_options

    client = client_of(before)
    if client is None:
        return []
    with client:
        components = client.components()
    systems = components.memory_systems if before[0] == "memory" else components.systems
    found = [declared_options(info) for info in systems if info.name == name]
    return [(name, declared) for declared in found if declared is not None]


def _evaluators_of(word: str) -> list[Taken]:
    name, _, target = word.partition("@")
    with suppress(Exception):
        if not target:
            from cbench_server.registry import registry
            from cbench_server.rpc.declared_options import builtin_options

            return [(name, builtin_options(registry, "evaluator", name))]
        from cbench_client import RemoteEvaluator
        from cbench_client.remote.loops import run

        with RemoteEvaluator(target, name=name, timeout=PATIENCE_SECONDS) as evaluator:
            run(evaluator.connect())
            return [(name, evaluator.declared)] if evaluator.declared is not None else []
    return []


def _pem(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None
