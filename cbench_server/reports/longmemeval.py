"""Answers for LongMemEval's own evaluation: a hypothesis for each question, as it reads them."""

import json
from collections.abc import Iterator

from cbench_server.reports.harness import only_system
from cbench_server.reports.report import Report
from cbench_server.reports.row_texts import as_text

_SOURCE = "xiaowu0162/LongMemEval"


def to_longmemeval(report: Report) -> Iterator[str]:
    """Write `question_id`, as the benchmark has it, and `hypothesis` for each row.

    A row that failed, or has no response, has an empty one.
    """
    system = only_system(report, "LongMemEval's evaluation", ("longmemeval",), _SOURCE)
    for row, original in report.full_rows(system):
        line = {
            "question_id": (original or {}).get("question_id", row.example_id),
            "hypothesis": as_text((row.processed or {}).get("response")) or "",
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"
