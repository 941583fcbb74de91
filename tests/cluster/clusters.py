"""A Ray cluster whose nodes are added and killed, for tests."""

import json
import os
import secrets
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv-ray" / "bin"

NEEDS_RAY = [
    pytest.mark.skipif(
        not (ROOT / ".venv-ray" / "cbench-ray.stamp").exists(),
        reason="Ray is not installed; run: python3 scripts/setup_venv.py ray",
    ),
    pytest.mark.slow,  # A cluster starts in ten seconds, each node of it in five.
    pytest.mark.timeout(600),
]


class Cluster:
    """Nodes that are added and killed."""

    def __init__(self, folder: Path, port: int = 0, token: str = "") -> None:
        folder.mkdir(exist_ok=True)
        # Ray makes sockets there, whose paths must be short.
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        # Known to the nodes and the daemons of this test only.
        self.environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": token or secrets.token_hex(32),
            "RAY_TMPDIR": self._folder.name,
            # A lost node is to be noticed within seconds.
            "RAY_health_check_initial_delay_ms": "1000",
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_failure_threshold": "3",
        }
        self._log = (folder / "nodes.log").open("w")
        self._process = subprocess.Popen(
            [BIN / "python", Path(__file__).with_name("nodes.py"), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self.environment,
            text=True,
            start_new_session=True,
        )
        self.address: str = self._read()

    def add(self, *, cpus: int, sandboxes: int) -> int:
        """Start a node and return its number."""
        number: int = self._order(add=cpus, sandboxes=sandboxes)
        return number

    def kill(self, node: int) -> None:
        """Kill the agent of a node."""
        self._order(kill=node)

    def scorers(self) -> list[int]:
        """Return the processes of the actors, on all nodes."""
        mine = f"RAY_AUTH_TOKEN={self.environment['RAY_AUTH_TOKEN']}".encode()
        return [
            int(process.name)
            for process in Path("/proc").iterdir()
            if process.name.isdecimal() and _is_scorer(process, mine)
        ]

    def kill_all(self) -> None:
        """Kill every process of the cluster, and wait until none is left."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)
        self._log.close()
        self._folder.cleanup()

    def close(self) -> None:
        """End all nodes."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._log.close()
        self._folder.cleanup()

    def _order(self, **order: int) -> Any:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, Path(self._log.name).read_text()
        return json.loads(line)


def _is_scorer(process: Path, mine: bytes) -> bool:
    try:
        is_named = (process / "cmdline").read_bytes().startswith(b"ray::Scorer")
        return is_named and mine in (process / "environ").read_bytes()
    except OSError:
        return False
