"""SWE-bench: what the official harness found out about a patch, taken from its report."""

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo
from cbench_server.types import Example, Scores


class SWEBench(ResponseEvaluator):
    """Gives `swebench_resolved`: 1.0 if the harness says that the issue is resolved, else 0.0.

    The example's `resolved` says so, which `cbench rescore --references REPORT` puts there.
    """

    name = "swebench"
    description = "Whether the issue is resolved, by a report of the official harness."
    required_fields = ("resolved",)
    score_infos = (ScoreInfo("swebench_resolved", "1.0 if the harness resolved the issue."),)

    def __init__(self) -> None:
        super().__init__()
        self.options = {}

    def score(self, original: Example, processed: Example) -> Scores:
        resolved = original.get("resolved")
        return {} if resolved is None else {"swebench_resolved": float(bool(resolved))}
