"""IFEval: does a response follow instructions that a program can check?"""

from cbench_server.evaluators.ifeval.checker import IFEvalChecker

__all__ = ["IFEvalChecker"]
