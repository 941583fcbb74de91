"""The Go SDK: what only its README and its examples show. The rest is in test_every_sdk.py."""

import json
from pathlib import Path

import pytest

from tests.fixtures.sdks import GO, built, run
from tests.sdks.toolchain import evaluate, fences


@pytest.fixture(autouse=True)
def programs() -> Path:
    """Return where the examples are built."""
    return built(GO).folder / "bin"


def test_every_program_of_the_readme_compiles(tmp_path: Path) -> None:
    # Overlaid onto the module, so that its dependencies are those of go.mod.
    overlay = {}
    for number, program in enumerate(fences(GO.readme, "go")):
        path = tmp_path / f"{number}.go"
        # Another package than main is compiled, and not linked, which takes longer.
        path.write_text(program.replace("package main", "package readme", 1))
        overlay[str(GO.folder / "readme" / str(number) / "main.go")] = str(path)
    (tmp_path / "overlay.json").write_text(json.dumps({"Replace": overlay}))
    build = ("go", "build", "-overlay", tmp_path / "overlay.json", "./readme/...")
    run(*build, cwd=GO.folder, **GO.environment)
    assert run("gofmt", "-l", tmp_path) == ""


def test_every_example_is_tested() -> None:
    tested = {"attach", "bm25", "drive", "hello", "hello-evaluator", "hello-memory"}
    assert {path.name for path in GO.examples.iterdir()} == tested


def test_the_compressor_keeps_the_answers_in_a_third_of_the_words(
    programs: Path, tmp_path: Path
) -> None:
    launch = ("--launch", programs / "bm25", "--option", "ratio=0.3", "--dataset", "long-notes")
    report = evaluate(*launch, home=tmp_path)
    summary = report["summary"]["go-bm25"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] > 0.9
    assert summary["context_compression"] > 0.6


def test_the_compressor_gives_the_same_twice(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "bm25", "--dataset", "long-notes", "-n", "10")
    first, second = (evaluate(*launch, home=tmp_path)["summary"]["go-bm25"] for _ in range(2))
    assert first["mean_output_tokens"] == second["mean_output_tokens"]
    assert first["mean_score"] == second["mean_score"]
