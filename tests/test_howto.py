"""What the how-to pages show besides commands: snippets, the workflow file, messages, the site."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures import preloaded
from tests.fixtures.ports import held_port

ROOT = Path(__file__).resolve().parent.parent
HOWTO = ROOT / "docs" / "howto"
BIN = Path(sys.executable).parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
MESSAGE = re.compile(r"^\| `([^`]+)`", re.M)


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text()) if kind == language]


def environment(folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CBENCH_")}
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "CBENCH_HOME": str(folder / "home")}


def cbench(folder: Path, *words: str) -> None:
    command = [str(preloaded.CBENCH), *words]
    done = preloaded.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page about rows makes."""
    folder = tmp_path_factory.mktemp("rows")
    run = ("run", "--builtin", "truncate-head", "--builtin", "identity", "--dataset", "mini-qa")
    cbench(folder, *run, "-n", "20", "--quiet")
    for name in ("rows.csv", "rows.parquet"):
        cbench(folder, "export", "last", "--with-texts", "-o", name)
    cbench(folder, "export", "last", "--partition-by", "system", "-o", "divided")
    return folder


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
def test_snippets_about_rows_run(library: str, rows: Path) -> None:
    (source,) = [s for s in blocks(HOWTO / "rows.md", "python") if f"import {library}\n" in s]
    python = Path(sys.executable)
    if library == "duckdb":
        tools = ROOT / ".venv-inspect"
        python = tools / "bin" / "python"
        if not (tools / "cbench-inspect.stamp").exists():
            assert os.environ.get("CI") != "true", "CI installs it: scripts/setup_venv.py inspect"
            pytest.skip("duckdb is not installed: python scripts/setup_venv.py inspect")
    done = subprocess.run(
        [python, "-c", source], cwd=rows, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert "identity" in done.stdout
    assert "truncate-head" in done.stdout


def test_the_commands_of_the_workflow_file_run(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "ci" / "cbench-gate.yml").read_text()
    commands = re.findall(r"- run: (cbench .*)$", text, re.M)
    assert len(commands) == 3
    (policies,) = [b for b in blocks(HOWTO / "gate.md", "text") if "at least" in b]
    (tmp_path / "cbench-policies.txt").write_text(policies)
    shutil.copy(ROOT / "examples" / "python" / "extractive.py", tmp_path / "my_system.py")
    variables = {**environment(tmp_path), "SYSTEM": "python my_system.py", "DATASET": "mini-qa"}
    for line in commands:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
    assert (tmp_path / "cbench.xml").read_text().startswith("<?xml")
    assert (tmp_path / "cbench.html").exists()


@pytest.mark.timeout(300)
def test_the_page_about_tls_works_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    page = HOWTO / "tls.md"
    ports = {"50443": str(held_port()), "50444": str(held_port())}
    (source,), (settings,) = blocks(page, "python"), blocks(page, "toml")
    script = "set -eu\ntrap 'kill $(jobs -p)' EXIT\n" + "".join(blocks(page, "sh"))
    for old, new in ports.items():
        source, settings, script = (each.replace(old, new) for each in (source, settings, script))
    (tmp_path / "my_system.py").write_text(source)
    (tmp_path / "daemon.toml").write_text(settings)
    # The page has a person between its parts, who sees that the daemon listens.
    listening = WAIT.format(port=ports["50443"])
    script = script.replace("export CBENCH_SERVER", f"{listening}\nexport CBENCH_SERVER")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**environment(tmp_path), "MY_SYSTEM_TOKEN": "a-secret-of-the-system"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shorten" in done.stdout
    assert "ann" in done.stdout


WAIT = "until (echo > /dev/tcp/localhost/{port}) 2>/dev/null; do sleep 0.1; done"


def test_messages_on_the_page_about_trouble_are_those_of_the_code() -> None:
    folders = (ROOT / "cbench_server", ROOT / "clients" / "python" / "cbench_client")
    sources = [path for folder in folders for path in folder.rglob("*.py")]
    code = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in sources))
    told = MESSAGE.findall((ROOT / "docs" / "troubleshooting.md").read_text())
    assert len(told) > 10
    missing = [each for each in told if each not in code]
    assert missing == []


@pytest.mark.timeout(300)
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    tools = ROOT / ".venv-docs"
    if not (tools / "cbench-docs.stamp").exists():
        assert os.environ.get("CI") != "true", "CI installs it: scripts/setup_venv.py docs"
        pytest.skip("mkdocs is not installed: python scripts/setup_venv.py docs")
    done = subprocess.run(
        [tools / "bin" / "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 60
    loaded = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]+)"')
    for page in pages:
        elsewhere = [each for each in loaded.findall(page.read_text()) if "rel=" not in each]
        assert elsewhere == [], page
    listed = (tmp_path / "site" / "llms.txt").read_text()
    assert listed.startswith("# cbench-server\n")
    # What the menu has; a page that it lacks is found by nobody.
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT).as_posix()
        assert name == "docs/index.md" or f"{name})" in listed, name
