"""Answers for MT-Bench's own judge: one conversation a line, as FastChat reads them."""

import json
from collections.abc import Iterator

from cbench_server.reports.harness import only_system
from cbench_server.reports.report import Report


def to_mt_bench(report: Report) -> Iterator[str]:
    """Write `question_id`, `answer_id`, `model_id`, `choices` and `tstamp` for each row.

    A row that failed has an empty reply to each turn.
    """
    system = only_system(report, "FastChat's judge", ("mt-bench",))
    for row, original in report.full_rows(system):
        processed = row.processed or {}
        asked = len((original or {}).get("turns") or ()) or 2
        given = [*(processed.get("turn_responses") or ())]
        if not given and processed.get("response") is not None:
            # Without the replies to each turn the response is the one to the last.
            given = ["", processed["response"]]
        turns = ["" if turn is None else str(turn) for turn in given]
        line = {
            "question_id": row.example_id,
            "answer_id": f"{system}-{row.example_id}",
            "model_id": system,
            "choices": [{"index": 0, "turns": [*turns, *[""] * (asked - len(turns))]}],
            "tstamp": report.run.create_time,
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"
