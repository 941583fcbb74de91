"""The README's hello in each language is compiled as it stands, and scores the same."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest

from cbench_server.evaluators import AnswerQuality
from cbench_server.registry import load_dataset
from tests.fixtures.sdks import CLIENTS, GO, NODE, ROOT, RUST, built, run
from tests.sdks.toolchain import evaluate, fences

PACKAGE = "github.com/cbench/cbench-server/clients/go"


def in_python(source: str, folder: Path) -> str:
    (folder / "hello.py").write_text(source)
    return f"{sys.executable} {folder / 'hello.py'}"


def in_javascript(source: str, folder: Path) -> str:
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "cbench-client").symlink_to(built(NODE).folder)
    (folder / "hello.mjs").write_text(source)
    return f"node {folder / 'hello.mjs'}"


def in_go(source: str, folder: Path) -> str:
    built(GO)
    (folder / "main.go").write_text(source)
    go = {"cwd": folder, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    run("go", "mod", "init", "example.com/hello", **go)
    run(
        "go",
        "mod",
        "edit",
        f"-replace={PACKAGE}={CLIENTS / 'go'}",
        f"-require={PACKAGE}@v0.0.0",
        **go,
    )
    shutil.copy(CLIENTS / "go" / "go.sum", folder)
    run("go", "build", "-o", "hello", ".", **go)
    return str(folder / "hello")


def in_rust(source: str, folder: Path) -> str:
    built(RUST)
    run("cargo", "init", "--vcs", "none", "--name", "hello", cwd=folder)
    run("cargo", "add", "cbench-client", "--path", CLIENTS / "rust", cwd=folder)
    shutil.copy(CLIENTS / "rust" / "Cargo.lock", folder)
    (folder / "src" / "main.rs").write_text(source)
    run("cargo", "build", "--quiet", cwd=folder, **RUST.outside)
    return str(folder / "target" / "debug" / "hello")


LANGUAGES = {"python": in_python, "js": in_javascript, "go": in_go, "rust": in_rust}


@pytest.mark.parametrize("language", LANGUAGES)
def test_hello_is_at_most_ten_lines_and_scores_a_run(language: str, tmp_path: Path) -> None:
    make: Callable[[str, Path], str] = LANGUAGES[language]
    hello = fences(ROOT / "README.md", language)[0]
    assert len(hello.splitlines()) <= 10
    folder = tmp_path / "hello"
    folder.mkdir()
    report = evaluate("--launch", make(hello, folder), "--dataset", "mini-qa", home=tmp_path)
    assert (report["systems"], report["failed_rows"]) == (["hello"], 0)
    assert report["completed_rows"] == report["total_rows"] > 0
    assert report["summary"]["hello"]["mean_score"] == pytest.approx(expected_score())


def expected_score() -> float:
    """Score what every hello should answer, without any of them."""
    examples = list(load_dataset("mini-qa"))
    answers = ({**each, "response": f"You asked: {each['question']}"} for each in examples)
    pairs = zip(examples, answers, strict=True)
    return mean(AnswerQuality().score(original, answer)["f1"] for original, answer in pairs)
