"""The wheels hold every file that the packages read, and what an index wants to know."""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import cbench_server

ROOT = Path(__file__).resolve().parent.parent

FILES = [
    "attach.toml",
    "bare.toml",
    "evaluator.toml",
    "memory.toml",
    "server.toml",
    "system-calls.toml",
    "system-describe.toml",
    "system-options.toml",
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


def built(source: Path, package: str, folder: Path) -> zipfile.ZipFile:
    """Build the wheel of a package from a copy of its sources."""
    tree = folder / "tree"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source / package, tree / package, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        if (source / name).exists():
            shutil.copy(source / name, tree)
    build = f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server_wheel(folder: Path) -> Iterator[zipfile.ZipFile]:
    with built(ROOT, "cbench_server", folder) as wheel:
        yield wheel


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("client")
    with built(ROOT / "clients" / "python", "cbench_client", folder) as wheel:
        yield wheel


def test_the_wheel_holds_every_file_that_is_not_python(
    server_wheel: zipfile.ZipFile, folder: Path
) -> None:
    tree = folder / "tree"
    names = [name for name in server_wheel.namelist() if ".dist-info/" not in name]
    found = [name.rpartition("/")[2] for name in names if not name.endswith(".py")]
    assert sorted(found) == sorted(FILES)
    in_tree = (tree / "cbench_server").rglob("*.py")
    makers = {"data", "long_notes"}
    python = {str(path.relative_to(tree)) for path in in_tree if path.parent.name not in makers}
    assert python == {name for name in names if name.endswith(".py")}


def metadata(wheel: zipfile.ZipFile) -> Message:
    (page,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(wheel.read(page))


@pytest.mark.parametrize("name", ["server_wheel", "client_wheel"])
def test_a_wheel_says_what_an_index_shows(name: str, request: pytest.FixtureRequest) -> None:
    wheel = request.getfixturevalue(name)
    said = metadata(wheel)
    assert said["Version"] == cbench_server.__version__
    assert all(said[name] for name in ("Author", "Keywords", "Classifier"))
    labels = {each.partition(",")[0] for each in said.get_all("Project-URL") or ()}
    assert {"Source", "Documentation", "Changelog", "Issues"} <= labels
    (licence,) = [each for each in wheel.namelist() if each.endswith("/licenses/LICENSE")]
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    page = str(said.get_payload())
    assert page.startswith("# cbench-")
    assert re.findall(r"\]\((?![a-z]+:|#)[^)]*\)", page) == [], "dead on an index"


def test_what_a_wheel_asks_for_has_bounds(server_wheel: zipfile.ZipFile) -> None:
    wanted = metadata(server_wheel).get_all("Requires-Dist") or []
    minor = cbench_server.__version__.rpartition(".")[0]
    assert f"cbench-client~={minor}.0" in wanted
    assert [each for each in wanted if each.startswith("protobuf") and "<" in each]
