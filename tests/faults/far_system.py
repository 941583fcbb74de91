"""A system for the far side of a network: `far_system.py serve|attach HOST:PORT DELAY`."""

import asyncio
import os
import sys
from typing import Any

from cbench_client import attach, serve


class Echo:
    """Answers with the question, after a while."""

    name = "echo"
    version = "1"
    max_concurrency = 8

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(self._delay)
        return {**example, "response": example["question"]}


if __name__ == "__main__":
    how, address, delay = sys.argv[1:]
    system = Echo(float(delay))
    if how == "serve":
        os.environ["CBENCH_HANDSHAKE"] = "1"
        serve(system, address, unsafe=True)
    else:
        print(f"cbench|1|tcp|{address}", flush=True)
        attach(system, address)
