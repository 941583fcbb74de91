"""Function calls, read from a response and matched with those that BFCL accepts."""

from cbench_server.evaluators.bfcl.evaluator import BFCL

__all__ = ["BFCL"]
