"""Answers compared with true and with false ones, as TruthfulQA's generation task scores them."""

from cbench_server.evaluators.truthfulqa.evaluator import TruthfulQA

__all__ = ["TruthfulQA"]
