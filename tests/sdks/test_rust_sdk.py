"""The Rust SDK: what only its README and its examples show. The rest is in test_every_sdk.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.sdks import ROOT, RUST, built, public_names, run
from tests.sdks.toolchain import evaluate, fences


@pytest.fixture(autouse=True)
def programs() -> Path:
    """Return where the examples are built."""
    return built(RUST).folder / "target" / "debug" / "examples"


@pytest.mark.parametrize(
    "command",
    [
        *RUST.build,
        (*RUST.tests[0], "--no-run"),
        # Nearly a minute of compiling, for what changes with the contract alone.
        pytest.param(("cargo", "xtask", "protos", "--check"), marks=pytest.mark.faults),
    ],
    ids=["examples", "tests", "what makes its stubs"],
)
def test_clippy_has_nothing_to_say(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        command,
        cwd=RUST.folder,
        env={**os.environ, **RUST.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    # Warnings, which are repeated when nothing is compiled.
    assert done.stderr == ""


def test_stubs_that_are_not_what_the_protos_give_are_found(tmp_path: Path) -> None:
    """As by a change of the contract, and by a hand that edits what is generated."""
    for changed in ("protos/cbench/v1/system.proto", "clients/rust/src/gen/cbench.v1.rs"):
        tree = tmp_path / Path(changed).stem
        for part in ("protos", "clients/rust"):
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("target"))
        check = (sys.executable, tree / "clients" / "rust" / "stubs.py")
        run(*check)
        with (tree / changed).open("a") as file:
            file.write("// more\n")
        assert "cargo xtask protos" in run(*check, code=1)


def test_rustdoc_has_nothing_to_say_and_its_page_is_current() -> None:
    """Asked without cargo, which would check every dependency again for it; warnings are errors."""
    assert (RUST.folder / "API.md").read_text() == public_names(RUST), "run: make sdk-docs"


def test_every_program_of_the_readme_compiles(tmp_path: Path) -> None:
    for number, program in enumerate(fences(RUST.readme, "rust")):
        path = tmp_path / "src" / "bin" / f"readme{number}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program if "fn main" in program else f"{program}\nfn main() {{}}\n")
    run("cargo", "init", "--lib", "--vcs", "none", "--name", "readme", cwd=tmp_path)
    run("cargo", "add", "cbench-client", "--path", RUST.folder, cwd=tmp_path)
    run("cargo", "add", "tokio", "--features", "macros,rt-multi-thread", cwd=tmp_path)
    for name in ("Cargo.lock", "rustfmt.toml"):
        shutil.copy(RUST.folder / name, tmp_path)
    run("cargo", "build", "--quiet", cwd=tmp_path, **RUST.outside)
    run("cargo", "fmt", "--check", cwd=tmp_path)


def test_every_example_is_tested() -> None:
    tested = {"attach", "dedup", "drive", "hello", "hello_evaluator", "hello_memory"}
    assert {path.stem for path in RUST.examples.iterdir()} == tested


def test_the_compressor_keeps_the_answers_within_its_budget(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "dedup", "--option", "ratio=0.3", "--dataset", "long-notes")
    report = evaluate(*launch, home=tmp_path)
    summary = report["summary"]["rust-dedup"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] > 0.9
    assert summary["context_compression"] > 0.6


def test_the_compressor_gives_the_same_twice(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "dedup", "--dataset", "long-notes", "-n", "10")
    first, second = (evaluate(*launch, home=tmp_path)["summary"]["rust-dedup"] for _ in range(2))
    assert first["mean_output_tokens"] == second["mean_output_tokens"]
    assert first["mean_score"] == second["mean_score"]
