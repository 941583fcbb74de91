"""A system in Python, with the SDK."""

import shlex
import sys

from cbench_server.cli.starters.starter import Starter

_SYSTEM = '''\
"""A system: keep the sentences that share a word with the question."""

import re
from typing import Any

from cbench_client import serve


class Mine:
    """Give it any name; a new version is never mistaken for an old one."""

    name = "mine"
    version = "1"

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Return the example with another context; `options` are those of the run file."""
        asked = re.findall(r"\\w{4,}", example.get("question", ""))
        sentences = re.split(r"(?<=[.!?])\\s+", example["context"])
        kept = [each for each in sentences if any(word in each for word in asked)]
        return {**example, "context": " ".join(kept)}


if __name__ == "__main__":
    serve(Mine())
'''
_TEST = '''\
"""Run with: python -m unittest"""

import unittest

from my_system import Mine


class MineTest(unittest.TestCase):
    def test_it_keeps_what_is_asked_about(self) -> None:
        example = {"context": "Tea is hot. The bridge is old.", "question": "Is the bridge old?"}
        self.assertEqual(Mine().process(example, {})["context"], "The bridge is old.")


if __name__ == "__main__":
    unittest.main()
'''
# The Python that runs cbench has the SDK.
_PYTHON = shlex.quote(sys.executable)

STARTER = Starter(
    files={"my_system.py": _SYSTEM, "test_my_system.py": _TEST},
    command=f"{_PYTHON} my_system.py",
    test=f"{_PYTHON} -m unittest",
    way="launch",
)
