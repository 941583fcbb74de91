"""A Ray cluster as the place where --launch runs."""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cbench_server.cli.engine_flags import resources_at, resources_text
from cbench_server.cli.exits import CommandFailed
from cbench_server.cluster import relay

_LAST_WORDS = 400
_STOP_S = 15.0


class Places:
    """Where each --launch runs: programs that need the same share a launcher."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._made: dict[str, ClusterPlace] = {}

    def of(self, place: int) -> "ClusterPlace | None":
        """Return where the system at a place runs; None for this machine."""
        needs = resources_at(self._args, place) or {"CPU": 1.0}
        if self._args.engine != "ray":
            return None
        text = resources_text(needs)
        if text not in self._made:
            self._made[text] = ClusterPlace(self._args.ray_address or "auto", needs)
        return self._made[text]


class ClusterPlace:
    """A Ray cluster, reached by one launcher program that is started with the first system.

    Args:
        needs: What each program takes of its node.
    """

    def __init__(self, address: str, needs: Mapping[str, float]) -> None:
        from cbench_server.lazy_imports import require

        require("ray", "--engine ray needs")
        self._address = address
        self._needs = dict(needs)
        self._folder = tempfile.TemporaryDirectory(prefix="cbench-", ignore_cleanup_errors=True)
        self._socket = Path(self._folder.name) / "launcher"
        self._launcher: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()

    def record(self) -> dict[str, Any]:
        """Return what finds this place again."""
        return {"ray_address": self._address, "resources": self._needs}

    def stand_in(self, words: list[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
        """Return the words of a program here that stands in for one there."""
        import msgspec

        from cbench_server.cluster.messages import Wanted

        with self._starting:
            if self._launcher is None or self._launcher.poll() is not None:
                self._launcher = self._start()
        wanted = Wanted(words, str(folder), dict(environment), self._needs)
        module = "cbench_server.cluster.stand_in"
        packed = msgspec.json.encode(wanted).decode()
        return [sys.executable, "-P", "-m", module, str(self._socket), packed]

    def close(self) -> None:
        """Leave the cluster, which ends whatever still runs there."""
        if self._launcher is not None:
            assert self._launcher.stdin is not None
            self._launcher.stdin.close()
            try:
                self._launcher.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._launcher.kill()
                self._launcher.wait()
        self._folder.cleanup()

    def _start(self) -> "subprocess.Popen[bytes]":
        from cbench_server.cluster.joining import variables

        self._socket.unlink(missing_ok=True)
        log = self._socket.with_suffix(".log")
        with log.open("wb") as errors:
            launcher = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "cbench_server.cluster.launcher",
                    str(self._socket),
                    self._address,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **variables(self._address)},
                # Ctrl-C is for this process, which ends it in good order.
                start_new_session=True,
            )
        stdout: Any = launcher.stdout
        if stdout.readline() != relay.READY:
            launcher.wait()
            said = log.read_text("utf-8", "replace").strip().splitlines()
            why = said[-1][-_LAST_WORDS:] if said else "it ended without a word"
            raise CommandFailed(f"the Ray cluster at {self._address} cannot be joined: {why}")
        return launcher
