"""The shortest evaluator: is the response as long as the answer?

Start it with: python examples/python/hello_evaluator.py 127.0.0.1:50063
and apply it with: cbench run ... --evaluator same-length@127.0.0.1:50063
"""

import sys
from typing import Any

from cbench_client import serve


class SameLength:
    """Compares the lengths of answer and response."""

    name = "same-length"
    version = "1"
    scores: dict[str, str] = {"same_length": "Whether answer and response are equally long."}  # noqa: RUF012
    required_fields = ("answer",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        if "answer" not in original or "response" not in processed:
            return {}  # Not applicable, which is not the same as zero.
        return {"same_length": float(len(original["answer"]) == len(processed["response"]))}


if __name__ == "__main__":
    serve(SameLength(), *sys.argv[1:])
