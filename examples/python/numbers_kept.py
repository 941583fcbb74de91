"""An evaluator of your own: how many of the numbers in a context survive?

Start it with: python examples/python/numbers_kept.py 127.0.0.1:50071
and apply it with: cbench run ... --evaluator numbers-kept@127.0.0.1:50071
"""

import re
import sys
from typing import Any

from cbench_client import serve


class NumbersKept:
    """Gives `numbers_kept`: the share of the context's numbers that are still there."""

    name = "numbers-kept"
    version = "1"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        before = set(re.findall(r"\d+", original["context"]))
        if not before:
            return {}  # Not applicable, which is not the same as zero.
        after = set(re.findall(r"\d+", processed.get("context", "")))
        return {"numbers_kept": len(before & after) / len(before)}


if __name__ == "__main__":
    serve(NumbersKept(), *sys.argv[1:])
