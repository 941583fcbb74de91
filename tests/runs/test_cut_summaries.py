"""Truncation as a baseline of summaries: what it keeps is its answer, through every door."""

import pytest

from cbench_client import BenchClient
from cbench_server import evaluate
from cbench_server.systems.controls import Identity, RandomDrop, TruncateHead, TruncateTail


def test_a_truncation_answers_with_what_it_keeps_where_a_summary_is_asked_for() -> None:
    systems = [TruncateTail(ratio=0.2), TruncateHead(ratio=0.2), RandomDrop(), Identity()]
    result = evaluate(systems, "mini-summaries", max_examples=4, progress=False)
    for row in result.rows:
        kept = row.processed or {}
        is_cut = row.system.startswith("truncate")
        assert kept.get("response") == (kept["context"] if is_cut else None)
        assert row.context_only == (not is_cut)
    headlines = {name: tuple(scores) for name, scores in result.config["headlines"].items()}
    assert headlines["truncate-tail"] == headlines["truncate-head"] == ("rouge_l_f1",)


def test_it_answers_nothing_where_a_question_is_asked() -> None:
    result = evaluate([TruncateTail()], "mini-qa", max_examples=4, progress=False)
    assert all(row.context_only for row in result.rows)


def test_the_daemon_gives_truncations_the_same_scores(daemon_address: str) -> None:
    here = evaluate([TruncateTail()], "mini-summaries", max_examples=4, progress=False)
    with BenchClient(daemon_address) as client:
        run_id = client.start(
            {
                "systems": [{"builtin": "truncate-tail"}],
                "datasets": [{"name": "mini-summaries", "max_examples": 4}],
            }
        )
        for _ in client.watch(run_id):
            pass
        (summary,) = client.get(run_id).summaries
    ours = here.summary["truncate-tail"]
    assert summary.metrics["mean_score"] == pytest.approx(ours["mean_score"])
    assert summary.metrics["mean_score"] > 0
