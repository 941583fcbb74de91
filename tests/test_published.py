"""`scripts/published.py` on a small repository of our own making."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

from tests.fixtures.small_suite import EXAMPLES, FIRST

SCRIPT = Path(__file__).parent.parent / "scripts" / "published.py"


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)


def _repository(folder: Path, *, claimed: float) -> Path:
    """Lay out outputs of BIG-Bench Hard as their authors do; those of the first task are wrong."""
    outputs = folder / "code-davinci-002-outputs" / "code-davinci-002-direct"
    outputs.mkdir(parents=True)
    (folder / "bbh").mkdir()
    for task, count in EXAMPLES.items():
        examples = [{"input": f"{n}?", "target": str(n)} for n in range(count)]
        (folder / "bbh" / f"{task}.json").write_text(json.dumps({"examples": examples}))
        said = [
            {**each, "prediction": "no" if task == FIRST else each["target"]} for each in examples
        ]
        name = f"{task}_few_shot_template_0-255000"
        (outputs / f"{name}.json").write_text(json.dumps({"outputs": said}))
        accuracy = claimed if task == FIRST else 100.0
        (outputs / f"{name}_eval_metrics.jsonl").write_text(json.dumps({"accuracy": accuracy}))
    _git(folder, "init", "--quiet")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message", "outputs")
    return folder


def test_published_figures_are_computed_again_and_a_wrong_one_is_found(tmp_path: Path) -> None:
    # Two seconds of CPU, since it starts `cbench` as users do.
    finished = subprocess.run(
        [sys.executable, SCRIPT, "bbh", _repository(tmp_path / "clone", claimed=50.0)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1, finished.stderr
    *lines, last = finished.stdout.splitlines()
    assert last == "26 of 28 figures are equal"
    assert [line for line in lines if line.endswith("differs")] == [
        f"code-davinci-002 direct  bbh:{FIRST}  published 50.0  here 0.00  differs",
        "code-davinci-002 direct  bbh:all  published 98.1  here —  differs",
    ]


def test_a_figure_with_verdicts_drawn_at_random_is_equal_but_for_those() -> None:
    missed = runpy.run_path(str(SCRIPT))["missed"]
    assert missed("76.89", 417 / 541, 2, 541) == 1
    assert missed("79.30", 431 / 541, 2, 541) == 2
    assert missed("79.30", 431 / 541, 1, 541) == 0
    assert missed("77.26", 417 / 541, 2, 541) == 0
