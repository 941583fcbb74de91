"""docs/any-language.md: its servers, built and run as the page says, pass the profile `bare`.

Maven and g++ compile for some twenty seconds each, once for all tests of a language.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fixtures.preloaded import CBENCH
from tests.fixtures.sdks import ROOT, needs, run
from tests.sdks.toolchain import FENCE, evaluate, table

PAGE = ROOT / "docs" / "any-language.md"


@dataclass(frozen=True)
class Language:
    """A part of the page, and what following it takes."""

    heading: str
    tools: tuple[str, ...]
    program: tuple[str, ...]
    """How the server is started, in the folder where it was built."""

    @property
    def part(self) -> str:
        return PAGE.read_text().partition(f"\n## {self.heading}\n")[2].partition("\n## ")[0]

    @property
    def commands(self) -> list[str]:
        return [body for kind, body in FENCE.findall(self.part) if kind == "sh"]


JAVA = Language("Java", ("java", "javac", "mvn"), ("java", "-jar", "target/mine.jar"))
CPP = Language("C++", ("g++", "make", "protoc", "grpc_cpp_plugin", "pkg-config"), ("./mine",))
# Less time in the compiler of the JVM, which would outlast what it compiles.
QUICK = {"MAVEN_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "CXXFLAGS": "-O0"}


@dataclass(frozen=True)
class Followed:
    """A language whose part of the page was followed in an empty folder."""

    language: Language
    folder: Path
    printed: str


@pytest.fixture(scope="module", params=[JAVA, CPP], ids=["java", "cpp"])
def followed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Followed:
    language: Language = request.param
    needs(*language.tools)
    folder = tmp_path_factory.mktemp("empty")
    script = "\n".join(["set -euo pipefail", *language.commands])
    home = str(tmp_path_factory.mktemp("home"))
    printed = run(
        "bash", "-c", script, cwd=folder, CBENCH=str(ROOT), CBENCH_HOME=home, COLUMNS="200", **QUICK
    )
    return Followed(language, folder, printed)


def _figures(printed: str) -> list[list[str]]:
    """Return the lines of a table without its times, which no machine repeats."""
    return [[*line[:7], line[-1]] for line in table(printed) if line[0] != "System"]


@pytest.mark.slow
def test_the_page_leads_from_an_empty_folder_to_the_digits_that_it_shows(
    followed: Followed,
) -> None:
    shown = _figures(followed.language.part)
    assert [line[0] for line in shown] == ["mine", "truncate-tail"]
    assert _figures(followed.printed) == shown


def test_its_server_passes_the_profile_bare(followed: Followed) -> None:
    report = json.loads(
        run(
            CBENCH,
            *("conformance", "--profile", "bare", "--output", "json", "--"),
            *followed.language.program,
            cwd=followed.folder,
        )
    )
    assert report["counts"]["passed"] == 8
    assert {case["why"] for case in report["cases"] if case["status"] == "skipped"} == {
        "no evaluator is served",
        "no memory is served",
        "no health service",
        "no stream is announced",
    }


def test_its_server_takes_more_than_a_grpc_library_does_by_itself(
    followed: Followed, tmp_path: Path
) -> None:
    long = tmp_path / "long.jsonl"
    text = "The garden has three trees. " * 180_000
    long.write_text(json.dumps({"id": 1, "question": "How many trees?", "context": text}) + "\n")
    program = [
        str(followed.folder / part) if "mine" in part else part
        for part in followed.language.program
    ]
    report = evaluate("--launch", shlex.join(program), "--dataset", str(long), home=tmp_path)
    assert (report["completed_rows"], report["failed_rows"]) == (1, 0)
