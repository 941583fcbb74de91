"""Evaluators that misbehave, for tests of what scores with them; imported by worker programs."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from cbench_server.types import Assessment, ScoreInfo


def hang() -> NoReturn:
    while True:
        signal.pause()


def announce(folder: str) -> None:
    """Leave this process's id where a test waits for it; the file appears whole."""
    path = Path(folder) / f"pid-{os.getpid()}"
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)


class InFolder:
    placement = "worker"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.options = {"folder": folder}

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        before = len([*Path(self.folder).glob("pid-*")])
        announce(self.folder)
        return self.act(before)

    def act(self, before: int) -> dict[str, float]:
        raise NotImplementedError


class HangsAtFirst(InFolder):
    name = "hangs-at-first"

    def act(self, before: int) -> dict[str, float]:
        return {"attempt": before + 1.0} if before else hang()


class DiesAtFirst(InFolder):
    name = "dies-at-first"

    def act(self, before: int) -> dict[str, float]:
        return {"attempt": before + 1.0} if before else os._exit(3)


class AlwaysDies(InFolder):
    name = "always-dies"

    def act(self, before: int) -> dict[str, float]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


class AlwaysHangs(InFolder):
    name = "always-hangs"

    def act(self, before: int) -> dict[str, float]:
        hang()


class TakesTenGigabytes(InFolder):
    name = "takes-ten-gigabytes"

    def act(self, before: int) -> dict[str, float]:
        return {"bytes": float(len(bytearray(10 << 30)))}


class HoldsTheInterpreter(InFolder):
    name = "holds-the-interpreter"

    def act(self, before: int) -> dict[str, float]:
        re.fullmatch(r"(a+)+b", "a" * 64)
        return {}


class LeavesAChild(InFolder):
    name = "leaves-a-child"

    def act(self, before: int) -> dict[str, float]:
        code = "import sys; sys.path.insert(0, sys.argv[1]); import troublesome_evaluators as t; "
        code += "t.announce(sys.argv[2]); t.hang()"
        here = str(Path(__file__).parent)
        subprocess.Popen([sys.executable, "-c", code, here, self.folder])
        hang()


class Broken:
    """Scores what it can, and is brought down by what it is told to be brought down by."""

    name = "broken"
    placement = "worker"
    version = "1"
    reads = "response"
    required_fields = ("answer",)
    score_infos = (ScoreInfo("equal", "1.0 if the response is the answer."),)

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        response = processed.get("response")
        if response == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if response == "hang":
            hang()
        return {"equal": float(response == original["answer"])}


class Chatty:
    """Prints, lets a child print, and reads standard input."""

    name = "chatty"
    placement = "worker"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        print("x" * 10_000, flush=True)
        os.write(1, b"\x00\x00\x00\x01z")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        return {"read": float(len(sys.stdin.read()))}


class Explains:
    name = "explains"
    placement = "worker"

    async def assess(self, original: dict[str, Any], processed: dict[str, Any]) -> Assessment:
        details = {"pid": os.getpid(), "key": os.environ.get("OPENAI_API_KEY", "")}
        return Assessment({"ok": 1.0}, details)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        raise AssertionError("assess is preferred")


class Raises:
    name = "raises"
    placement = "worker"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        raise KeyError("missing")


class WhereAmI:
    """Inline, and says in which process it ran."""

    name = "where-am-i"
    placement = "inline"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {"pid": float(os.getpid())}
