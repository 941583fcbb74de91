"""No daemon at all: evaluate a Python object in this process.

Run it with: python examples/python/in_process.py
"""

from typing import Any

from cbench_server import evaluate
from cbench_server.evaluators import ContextRetention
from cbench_server.metrics import CompressionRatio, MeanScore
from cbench_server.registry import load_dataset


class FirstSentences:
    """Keeps the first two sentences."""

    name = "first-sentences"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "context": ". ".join(example["context"].split(". ")[:2])}


if __name__ == "__main__":
    result = evaluate(
        systems=[FirstSentences()],
        dataset=load_dataset("mini-qa"),
        evaluators=[ContextRetention()],
        metrics=[MeanScore(score_field="answer_retained"), CompressionRatio()],
        progress=False,
    )
    for name, value in result.summary["first-sentences"].items():
        print(f"{name}: {value}")
