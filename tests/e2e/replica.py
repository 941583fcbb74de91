"""One replica for tests: `python replica.py WHERE VERSION [CONTROL]`.

`WHERE` is a port to listen at, or `attach:HOST:PORT` of a daemon to dial. It takes one call at a
time, and does what the file CONTROL says, while there is one: `slow`, `hang` or `fail`.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from cbench_client import attach, serve

DELAY_S = 0.05
SLOW_S = 1.0


class Worker:
    """Answers with the question, and says which process it is."""

    name = "worker"
    max_concurrency = 1

    def __init__(self, version: str, control: str = "") -> None:
        self.version = version
        self._control = Path(control)

    def _mode(self) -> str:
        return self._control.read_text() if self._control.is_file() else ""

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        mode = self._mode()
        if mode == "fail":
            raise RuntimeError("this machine is broken")
        time.sleep(SLOW_S if mode == "slow" else DELAY_S)
        while self._mode() == "hang":
            time.sleep(0.02)
        return {**example, "response": example["question"], "pid": os.getpid()}


if __name__ == "__main__":
    where, *rest = sys.argv[1:]
    worker = Worker(*rest)
    if where.startswith("attach:"):
        attach([worker], server=where.removeprefix("attach:"))
    else:
        serve([worker], f"127.0.0.1:{where}")
