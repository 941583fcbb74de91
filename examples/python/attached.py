"""A system behind a firewall: it dials the daemon instead of being dialled.

Start a daemon with `cbench-server`, then: python examples/python/attached.py 127.0.0.1:50051
and run it with: cbench run --server 127.0.0.1:50051 --attached first-and-last --dataset mini-qa
"""

import sys
from typing import Any

from cbench_client import attach


class FirstAndLast:
    """Keeps the first and the last sentence."""

    name = "first-and-last"
    version = "1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        sentences = example["context"].split(". ")
        return {**example, "context": ". ".join([sentences[0], sentences[-1]])}


if __name__ == "__main__":
    attach(FirstAndLast(), *sys.argv[1:])
