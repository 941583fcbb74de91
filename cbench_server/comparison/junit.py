"""JUnit report of a gate: one test case per policy."""

from collections import Counter
from collections.abc import Sequence

from cbench_server.comparison.gate import Check
from cbench_server.texts.junit_xml import DECLARATION, Case, suite


def to_junit(checks: Sequence[Check], name: str) -> str:
    """Render one test case per policy."""
    cases = [
        Case(
            classname=name,
            name=each.policy.text,
            outcome="passed" if each.passed else "failure",
            message=each.verdict,
            kind="policy",
            text=each.explanation,
        )
        for each in checks
    ]
    counts = Counter(case.outcome for case in cases)
    return DECLARATION + "".join(suite("cbench gate", counts, cases))
