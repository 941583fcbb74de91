"""Adapters serve what other libraries have: each is tried against the real one."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import preloaded

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "adapters"
PYTHON = ROOT / ".venv-adapters" / "bin" / "python"

needs_libraries = pytest.mark.skipif(
    not (ROOT / ".venv-adapters" / "cbench-adapters.stamp").exists(),
    reason="the libraries of adapters are not installed; run: make adapters",
)


def run_file(name: str, tmp_path: Path, *command: str) -> dict[str, Any]:
    """Run an example's file with the Python that has the libraries."""
    text = (EXAMPLES / name).read_text()
    folder = json.dumps(str(EXAMPLES))
    text = text.replace('launch = "python', f'folder = {folder}\nlaunch = "{PYTHON}')
    (tmp_path / name).write_text(text)
    done = _cbench(tmp_path, *command, "-c", name, "--output", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["failed_rows"] == 0, done.stderr
    return found


def _cbench(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return preloaded.run(
        [str(preloaded.CBENCH), *words],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
        env={**os.environ, "CBENCH_HOME": str(folder / "home"), "TMPDIR": str(folder)},
        check=False,
    )


@needs_libraries
@pytest.mark.slow  # Two libraries are imported by two processes each.
@pytest.mark.timeout(900)
def test_retrievers_and_compressors_keep_a_part_of_the_context(tmp_path: Path) -> None:
    found = run_file("compressors.toml", tmp_path, "run", "--controls", "none", "-n", "4")
    by_system: dict[str, list[dict[str, Any]]] = {}
    for row in found["rows"]:
        by_system.setdefault(row["system"], []).append(row)
    assert len(by_system) == 4
    for system, rows in by_system.items():
        kept = sum(row["context_tokens_out"] for row in rows)
        assert 0 < kept < sum(row["context_tokens_in"] for row in rows), system
    # Those that look for the answer find it more often than not.
    for system in ("langchain-retriever", "langchain-compressor", "llamaindex-retriever"):
        scores = [row["scores"]["answer_retained"] for row in by_system[system]]
        assert sum(scores) / len(scores) > 0.5, (system, scores)


@needs_libraries
@pytest.mark.slow  # mem0 takes seconds to import.
@pytest.mark.timeout(900)
def test_mem0_and_an_mcp_server_are_memories(tmp_path: Path) -> None:
    found = run_file("memories.toml", tmp_path, "memory", "run")
    contexts: dict[str, list[str]] = {}
    for example in sorted({row["example_id"] for row in found["rows"]})[:3]:
        shown = _cbench(tmp_path, "show", "last", "--example", example, "--output", "json")
        for row in json.loads(shown.stdout):
            contexts.setdefault(row["system"], []).append(row["processed"]["context"])
    assert {*contexts} == {"mem0", "mcp-notes"}
    for system, remembered in contexts.items():
        assert all(remembered), system
        assert len(set(remembered)) > 1, f"{system} finds the same for every question"


@needs_libraries
@pytest.mark.timeout(900)
def test_embeddings_from_a_wheel_find_what_is_asked(tmp_path: Path) -> None:
    programs = ROOT / "examples" / "python"
    launch = f"{PYTHON} {programs / 'embedding_retriever.py'}"
    flags = ["--launch-timeout", "10m", "--output", "json"]
    done = _cbench(
        tmp_path, "run", "--launch", launch, "--dataset", "long-notes", "-n", "8", *flags
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert sum(row["scores"]["answer_retained"] for row in rows) >= 6
    assert all(row["context_tokens_out"] < 0.5 * row["context_tokens_in"] for row in rows)
    launch = f"{PYTHON} {programs / 'embedding_memory.py'}"
    command = ["memory", "run", "--launch", launch, "--dataset", "mini-memory", "-n", "1", *flags]
    done = _cbench(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed_rows"] == 0


def test_a_missing_library_is_told_with_the_command_that_adds_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("build = print\n")
    done = _adapt(tmp_path, "llamaindex-retriever", "mine:build")
    assert done.returncode == 2
    assert "pip install llama-index-core" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["langchain-retreiver", "mine:build"], 'Did you mean "langchain-retriever"?'),
        (["mem0", "mine"], "write it as MODULE:NAME"),
        (["mem0", "mine:absent"], "mine has no absent."),
        (["mem0", "absent:build"], "Start this where absent.py is"),
        ([], "name an adapter and an object"),
        (["mem0", "mine:number"], "an object of int, and mem0 is made from a function that"),
        (["langchain-compressor", "mine:build"], "a function, and langchain-compressor is made"),
        (["langchain-compressor", "mine:Reranker"], "is the class Reranker"),
        (["mcp-memory", "mine:number"], "is made from a McpServer"),
        (["mem0", "wants:build"], "No module named 'no_such_library'. wants imports it."),
    ],
)
def test_what_cannot_be_adapted_is_told(tmp_path: Path, words: list[str], told: str) -> None:
    (tmp_path / "mine.py").write_text(
        "def build():\n    pass\n\nclass Reranker:\n    compress_documents = build\n\nnumber = 3\n"
    )
    (tmp_path / "wants.py").write_text("import no_such_library\n")
    done = _adapt(tmp_path, *words)
    assert done.returncode == 2
    assert told in done.stderr


@needs_libraries
@pytest.mark.timeout(300)
def test_mem0_tells_nobody_although_a_module_imports_it_first(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from mem0.memory import telemetry\n"
        "open('told', 'w').write(str(telemetry.MEM0_TELEMETRY))\n"
        "build = 3\n"
    )
    environment = {key: each for key, each in os.environ.items() if key != "MEM0_TELEMETRY"}
    subprocess.run(
        [str(PYTHON), "-m", "cbench_client.adapters", "mem0", "mine:build"],
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path)},
        check=False,
    )
    assert (tmp_path / "told").read_text() == "False"


def test_the_list_has_every_adapter_and_what_it_needs(tmp_path: Path) -> None:
    done = _adapt(tmp_path, "--list", "--output", "json")
    listed = {each["name"]: each["library"] for each in json.loads(done.stdout)}
    assert listed["mcp-memory"] == "mcp"
    assert listed["openai-proxy"] == ""
    assert {"langchain-retriever", "llamaindex-postprocessor", "mem0"} <= {*listed}
    assert "langchain-compressor" in _adapt(tmp_path, "--list").stdout


def _adapt(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return _cbench(folder, "adapt", *words)
