"""BFCL's categories in Java and JavaScript: read from a mirror, prompted in their notation, run."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench, strict

_FOLDER = "gorilla-llm/Berkeley-Function-Calling-Leaderboard"
_RIGHT = {"java": "Box.put(count=5L)", "javascript": "Box.put(count=5n)"}
_TYPE = {"java": "long", "javascript": "Bigint"}


@pytest.mark.parametrize("language", [*_RIGHT])
def test_a_category_in_another_language_is_run_from_a_mirror(
    cbench: Cbench, tmp_path: Path, language: str
) -> None:
    folder = tmp_path / "hub" / _FOLDER
    (folder / "possible_answer").mkdir(parents=True)
    parameters = {"required": ["count"], "properties": {"count": {"type": _TYPE[language]}}}
    rows = [
        {
            "id": f"{language}_{n}",
            "question": [[{"role": "user", "content": "Put five into the box."}]],
            "function": [{"name": "Box.put", "parameters": parameters}],
        }
        for n in range(2)
    ]
    answers = [{"id": row["id"], "ground_truth": [{"Box.put": {"count": [5]}}]} for row in rows]
    said = [
        {"id": f"{language}_0", "response": _RIGHT[language]},
        {"id": f"{language}_1", "response": "Box.put(count=5)"},
    ]
    name = f"BFCL_v3_{language}.json"
    for path, lines in (
        (folder / name, rows),
        (folder / "possible_answer" / name, answers),
        (tmp_path / "said.jsonl", said),
    ):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    hub = ("--data-dir", tmp_path / "hub")
    finished = cbench(
        *("run", "--dataset", f"bfcl:{language}", *hub, "--timed-rows", "0", "--output", "json"),
        *("--predictions", tmp_path / "said.jsonl"),
    )
    assert finished.returncode == 0, finished.stderr
    assert strict(finished.stdout)["summary"]["said"]["mean_score"] == 0.5
    shown = cbench("datasets", "show", f"bfcl:{language}", *hub)
    assert {"java": "Java 8 source", "javascript": "JavaScript source"}[language] in shown.stdout
