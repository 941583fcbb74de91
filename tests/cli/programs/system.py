"""A system for the tests: answers every question, in ways its arguments name."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from cbench_client import serve


class Answering:
    """Gives the words of the question as the answer, and half of the context."""

    name = "answering"
    version = "1"
    description = "Answers for tests."

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        assert "answer" not in example, "the answer is withheld"
        context = example["context"]
        return {**example, "context": context[: len(context) // 2], "response": example["question"]}


class Failing(Answering):
    """Fails on every example."""

    name = "failing"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no luck")


class Selecting(Answering):
    """Keeps the sentences that tell a code, and fails on one example."""

    name = "selecting"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] == 7:
            raise ValueError("no luck")
        sentences = example["context"].split(". ")
        kept = ". ".join(each for each in sentences if " code " in each)
        return {**example, "context": kept}


class Halving(Answering):
    """Keeps the first half of the context, whatever it says."""

    name = "halving"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        words = example["context"].split()
        return {**example, "context": " ".join(words[: len(words) // 2])}


class Ignoring(Halving):
    """Takes any options, and ignores them."""

    name = "ignoring"

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        return super().process(example)


class Keeping(Answering):
    """Keeps a share of the sentences, those with a code first; options it knows are its own."""

    name = "keeping"

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        sentences = example["context"].split(". ")
        count = max(1, round(len(sentences) * options.get("ratio", 0.5)))
        first = sorted(sentences, key=lambda each: " code " not in each)[:count]
        return {**example, "context": ". ".join(first)}


class Wavering(Answering):
    """Keeps another part of the context whenever it is asked."""

    name = "wavering"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        with open(sys.argv[2], "a") as calls:
            calls.write(".")
        return {**example, "context": f"{example['context']} ({time.monotonic_ns()})"}


class Stuck(Answering):
    """Answers the first few examples, then says so by a file and waits for another."""

    name = "stuck"

    def __init__(self, folder: Path) -> None:
        self._stuck, self._released = folder / "stuck", folder / "released"
        self._left = 5
        self._lock = threading.Lock()

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._left -= 1
            is_free = self._left >= 0
        if not is_free:
            self._stuck.write_text(str(os.getpid()))
            while not self._released.exists():
                time.sleep(0.02)
        return super().process(example)


class Mortal(Answering):
    """Dies of one example, with a word on stderr."""

    name = "mortal"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] == "mini-qa-002":
            print("cannot bear this one", file=sys.stderr, flush=True)
            os._exit(3)
        print("answered", example["id"])
        return super().process(example)


class Mayfly(Answering):
    """Dies of its first example, and cannot be started again."""

    name = "mayfly"

    def __init__(self, spent: Path) -> None:
        if spent.exists():
            print("spent", file=sys.stderr, flush=True)
            os._exit(4)
        self._spent = spent

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self._spent.touch()
        print("so short", file=sys.stderr, flush=True)
        os._exit(3)


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "both":
        serve([Answering(), Failing()])
    elif kind == "stuck":
        serve(Stuck(Path(sys.argv[2])), *sys.argv[3:])
    elif kind == "mayfly":
        serve(Mayfly(Path(sys.argv[2])))
    elif kind == "mortal":
        print("loading the weights", flush=True)
        serve(Mortal())
    else:
        kinds = (Answering, Failing, Selecting, Halving, Ignoring, Keeping, Wavering)
        serve(next(each for each in kinds if each.name == kind)())
