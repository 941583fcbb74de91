"""Launcher program: starts programs on the nodes of a Ray cluster, for those who ask at a socket.

Started by `cbench`, one for all that is launched for a run; of no use by hand. Each that asks is a
stand-in (stand_in.py): it gets what its program prints, and its program ends with it.
"""

import asyncio
import contextlib
import os
import sys
from typing import Any

import msgspec
import ray
from ray.exceptions import RayError

from cbench_server.cluster import relay
from cbench_server.cluster.holder import Holder
from cbench_server.cluster.joining import join, leave
from cbench_server.cluster.messages import NO_PLACE, Ended, Said, Wanted
from cbench_server.cluster.stand_in import LOST

_MAX_LINE = 1 << 22
_STOP_S = 10.0
# What Ray knows by names of its own.
_OWN = ("CPU", "GPU", "memory")


class NoPlace(Exception):
    """No node could ever take a program."""


async def _attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Start the program that a stand-in wants, and tell it what becomes of that."""
    try:
        packed = await reader.readline()
        wanted = msgspec.json.decode(packed, type=Wanted)
        actor = await _placed(wanted, packed)
        listening = asyncio.create_task(_heed(reader, actor))
        try:
            async for reference in actor.hold.remote():
                writer.write(await reference + b"\n")
                await writer.drain()
        except RayError as error:
            why = f"its place on the Ray cluster was lost: {type(error).__name__}"
            _tell(writer, Ended(LOST, why))
        finally:
            listening.cancel()
            _kill(actor)
    except NoPlace as error:
        _tell(writer, Ended(NO_PLACE, str(error)))
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()


async def _placed(wanted: Wanted, packed: bytes) -> Any:
    """Ask for an actor on some node; it is made once that has room."""
    needs = wanted.resources
    nodes = [node for node in await asyncio.to_thread(ray.nodes) if node["Alive"]]
    if not any(_fits(needs, node["Resources"]) for node in nodes):
        raise NoPlace(_lacking(needs, nodes))
    options = {
        "num_cpus": needs.get("CPU", 0.0),
        "num_gpus": needs.get("GPU", 0.0),
        "memory": needs.get("memory"),
        "resources": {name: value for name, value in needs.items() if name not in _OWN},
        # Replicas are there for more machines than one.
        "scheduling_strategy": "SPREAD",
        "max_restarts": 0,
    }
    here = ray.get_runtime_context().get_node_id()
    return ray.remote(Holder).options(**options).remote(packed, here)


async def _heed(reader: asyncio.StreamReader, actor: Any) -> None:
    """Stop the program when that is asked for, and give it up when nobody asks any more."""
    with contextlib.suppress(OSError):
        await reader.readline()
    with contextlib.suppress(RayError, TimeoutError):
        async with asyncio.timeout(_STOP_S):
            await actor.stop.remote()
    if not await reader.read(1):
        _kill(actor)


def _fits(needs: dict[str, float], offered: dict[str, float]) -> bool:
    return all(offered.get(name, 0.0) >= value for name, value in needs.items())


def _lacking(needs: dict[str, float], nodes: list[dict[str, Any]]) -> str:
    offers = [node["Resources"] for node in nodes]
    wanted = ", ".join(f"{name}={value:g}" for name, value in needs.items())
    most = ", ".join(
        f"{name}={max((each.get(name, 0.0) for each in offers), default=0.0):g}" for name in needs
    )
    return f"no node of the Ray cluster offers {wanted}; the most that one has is {most}"


def _kill(actor: Any) -> None:
    # The cluster may be gone as well.
    with contextlib.suppress(Exception):
        ray.kill(actor)


def _tell(writer: asyncio.StreamWriter, said: Said) -> None:
    with contextlib.suppress(OSError):
        writer.write(msgspec.json.encode(said) + b"\n")


async def _serve(path: str) -> None:
    server = await asyncio.start_unix_server(_attend, path, limit=_MAX_LINE)
    os.write(1, relay.READY)
    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    await stdin.read()
    server.close()


def main() -> None:
    """Join the cluster, and launch until standard input closes."""
    path, address = sys.argv[1:]
    join(address)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(path))
    leave()


if __name__ == "__main__":
    main()
