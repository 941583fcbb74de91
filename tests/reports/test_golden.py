"""Reports of a fixed run, compared with golden files; CBENCH_GOLDEN=1 rewrites them."""

import os
from pathlib import Path

import pytest

from cbench_server.reports.csv_report import to_csv
from cbench_server.reports.json_report import row_line, to_json
from cbench_server.reports.markdown import to_markdown
from cbench_server.reports.table import RowFacts, to_table
from cbench_server.results import EvalRow
from cbench_server.spec import Run

_GOLDEN = Path(__file__).parent / "golden"
_FACTS = RowFacts(
    failures={"DEADLINE_EXCEEDED": 1},
    scores={"go-truncate|v2": ("f1",), "identity": ("answer_retained",)},
)


@pytest.mark.parametrize("name", ["table.txt", "markdown.md", "rows.csv", "run.json", "rows.jsonl"])
def test_a_report_reads_as_it_did(name: str, run: Run, rows: list[EvalRow]) -> None:
    rendered = {
        "table.txt": lambda: to_table(run, _FACTS),
        "markdown.md": lambda: to_markdown(run.summary, run.timing, 3),
        "rows.csv": lambda: "".join(to_csv(lambda: rows)),
        "run.json": lambda: "".join(to_json(run, rows)),
        "rows.jsonl": lambda: "".join(f"{row_line(row)}\n" for row in rows),
    }[name]()
    golden = _GOLDEN / name
    if os.environ.get("CBENCH_GOLDEN") == "1":
        golden.write_text(rendered)
    assert rendered == golden.read_text()
