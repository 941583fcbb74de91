"""A comparison as text, Markdown, data and HTML."""

import json
import os
from pathlib import Path

import pytest

from cbench_server.comparison import Comparison, compare
from cbench_server.reports.comparison import to_dict, to_markdown, to_table
from cbench_server.results import EvalRow, strict_json

_GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def comparison() -> Comparison:
    """Three systems, of which one has a name that wants to be more than text."""

    def rows(system: str, scores: list[float], tokens: int) -> list[EvalRow]:
        return [
            EvalRow(
                system,
                place,
                {"f1": score},
                100,
                50,
                dataset="long|notes",
                primary_score="f1",
                context_tokens_in=100,
                context_tokens_out=tokens + place % 3,
                latency=tokens / 1000,
            )
            for place, score in enumerate(scores)
        ]

    return compare(
        {
            "<b>go</b>|v2": rows("go", [0.9, 0.8, 0.7, 0.95, 0.85] * 8, 40),
            "identity": rows("identity", [0.7, 0.75, 0.72, 0.6, 0.8] * 8, 98),
            "same": rows("same", [0.7, 0.75, 0.72, 0.6, 0.8] * 8, 98),
        }
    )


@pytest.mark.parametrize("name", ["comparison.txt", "comparison.md"])
def test_a_comparison_reads_as_it_did(name: str, comparison: Comparison) -> None:
    rendered = {"comparison.txt": to_table, "comparison.md": to_markdown}[name](comparison, flips=3)
    golden = _GOLDEN / name
    if os.environ.get("CBENCH_GOLDEN") == "1":
        golden.write_text(rendered)
    assert rendered == golden.read_text()


def test_names_are_inert_in_a_notebook(comparison: Comparison) -> None:
    for page in (comparison._repr_html_(), comparison.pairs[0]._repr_html_()):
        assert "&lt;b&gt;go&lt;/b&gt;|v2" in page
        assert "<b>" not in page


def test_plain_data_has_every_number_and_survives_json(comparison: Comparison) -> None:
    document = json.loads(strict_json(to_dict(comparison)))
    assert document["pairs"][0]["difference"]["value"] == comparison.pairs[0].difference.value
    assert [pair["is_claimed"] for pair in document["pairs"]] == [True, True, False]
    assert document["fronts"][0]["points"][0]["layer"] == 1
