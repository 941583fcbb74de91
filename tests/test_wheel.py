"""The wheel holds every file that the package reads."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FILES = [
    "attach.toml",
    "bare.toml",
    "evaluator.toml",
    "memory.toml",
    "server.toml",
    "system-calls.toml",
    "system-describe.toml",
    "system-streams.toml",
    "system-values.toml",
    "cl100k_base.tiktoken.xz",
    "o200k_base.tiktoken.xz",
    "punkt_english.zip",
    "long-notes.jsonl",
    "mini-chat.jsonl",
    "mini-choice.jsonl",
    "mini-code.jsonl",
    "mini-instructions.jsonl",
    "mini-maths.jsonl",
    "mini-memory.jsonl",
    "mini-nli.jsonl",
    "mini-qa.jsonl",
    "mini-summaries.jsonl",
    "licenses.md",
    "any.toml",
    "code.toml",
    "embedded.toml",
    "generated.toml",
    "instruction_following.toml",
    "long_context.toml",
    "maths.toml",
    "memory.toml",
    "multiple_choice.toml",
    "nli.toml",
    "official.toml",
    "question_answering.toml",
    "reasoning.toml",
    "shapes.toml",
    "software.toml",
    "summarization.toml",
    "tool_use.toml",
    "report.css",
    "report.js",
    "script.py.mako",
    "py.typed",
]


def test_the_wheel_holds_every_file_that_is_not_python(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "cbench_server", tree / "cbench_server", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    build = f"from setuptools.build_meta import build_wheel; build_wheel({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    found = [name.rpartition("/")[2] for name in names if not name.endswith(".py")]
    assert sorted(found) == sorted(FILES)
    in_tree = (tree / "cbench_server").rglob("*.py")
    makers = {"data", "long_notes"}
    python = {str(path.relative_to(tree)) for path in in_tree if path.parent.name not in makers}
    assert python == {name for name in names if name.endswith(".py")}
