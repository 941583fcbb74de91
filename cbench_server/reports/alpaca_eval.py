"""Outputs for AlpacaEval: one list of instructions and responses, as its program reads them."""

import json
from collections.abc import Iterator

from cbench_server.reports.harness import only_system
from cbench_server.reports.report import Report


def to_alpaca_eval(report: Report) -> Iterator[str]:
    """Write `instruction`, `output`, `generator`, `dataset` and `datasplit` for each row.

    A row that failed has an empty output.
    """
    system = only_system(report, "AlpacaEval", ("alpaca-eval",))
    yield "[\n"
    for place, (row, original) in enumerate(report.full_rows(system)):
        response = (row.processed or {}).get("response")
        document = {
            "instruction": str((original or {}).get("context") or ""),
            "output": "" if response is None else str(response),
            "generator": system,
            "dataset": str((original or {}).get("category") or ""),
            "datasplit": "eval",
        }
        yield (",\n" if place else "") + json.dumps(document, ensure_ascii=False)
    yield "\n]\n"
