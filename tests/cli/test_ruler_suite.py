"""`ruler:all` to its end: the tasks that need outside data read it from a mirror."""

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Cbench, strict


def _mirror(folder: Path) -> Path:
    squad = [
        {
            "context": f"Tower {n} stands in town {n}. " + "It is old and tall and grey. " * 6,
            "question": f"Where does tower {n} stand?",
            "answers": {"text": [f"town {n}"]},
        }
        for n in range(20)
    ]
    hotpotqa = [
        {
            "question": f"Who built bridge {n}?",
            "answer": f"Builder {n}",
            "supporting_facts": {"title": [f"Bridge {n}"], "sent_id": [0]},
            "context": {
                "title": [f"Bridge {n}", f"River {n}"],
                "sentences": [[f"It was built by Builder {n}."], ["It flows to the sea. " * 20]],
            },
        }
        for n in range(20)
    ]
    _write(folder / "rajpurkar/squad_v2/default/validation.jsonl", squad)
    _write(folder / "hotpotqa/hotpot_qa/distractor/validation.jsonl", hotpotqa)
    return folder


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_all_tasks_of_ruler_run_with_a_mirror_and_have_one_figure(
    cbench: Cbench, tmp_path: Path
) -> None:
    finished = cbench(
        *("run", "--dataset", "ruler:all,length=500,count=1", "--builtin", "identity"),
        *("--data-dir", _mirror(tmp_path / "hub"), "--timed-rows", "0", "--output", "json"),
    )
    assert finished.returncode == 0, finished.stderr
    document = strict(finished.stdout)
    summary = document["summary"]["identity"]
    assert summary["suite:ruler:all,length=500,count=1,seed=0"] == 1.0
    parts = [key for key in summary if key.startswith("dataset:ruler:") and key.endswith("seed=0")]
    assert len(parts) == 13
    # Settings that an evaluator has unasked are the official ones.
    datasets = document["config"]["datasets"]
    statuses = {each["protocol"]["axes"]["metric"]["status"] for each in datasets}
    assert statuses == {"same"}
