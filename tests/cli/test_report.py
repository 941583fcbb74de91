"""`cbench report`, and `cbench run --output html`."""

import gzip
import json
import os
import pty
import re
import subprocess
import threading
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CBENCH, Cbench, complaint
from tests.fixtures import preloaded


@pytest.fixture
def cbench(cbench: Cbench, daemon_address: str) -> Cbench:
    """`cbench` with a daemon that stays: quicker than one for each command."""
    return partial(cbench, CBENCH_SERVER=daemon_address)


def _run(cbench: Cbench, *words: str, dataset: str = "mini-qa") -> None:
    finished = cbench("run", "--dataset", dataset, "-n", "6", "--quiet", *words)
    assert finished.returncode == 0, finished.stderr


def _parts(document: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pattern = r'<script type="application/(gzip|json)" id="([^"]+)">([^<]*)</script>'
    for kind, name, content in re.findall(pattern, document):
        text = gzip.decompress(b64decode(content)).decode() if kind == "gzip" else content
        found[name] = json.loads(text)
    return found


def test_a_report_holds_the_run_its_comparison_and_its_rows(cbench: Cbench, tmp_path: Path) -> None:
    _run(cbench, "--builtin", "identity", "--builtin", "truncate-tail")
    written = cbench("report", "last", "-o", "report.html")
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith("report.html (")
    found = _parts((tmp_path / "report.html").read_text())
    head = found["report"]
    assert head["systems"] == ["identity", "truncate-tail"]
    assert "answer" in head["references"]
    assert len(head["comparison"]["pairs"]) == 1
    assert {front["axis"] for front in head["comparison"]["fronts"]} >= {"context_tokens"}
    assert len(found["index"]["rows"]["system"]) == 12
    assert found["example-0"][0]["answer"][0]
    assert "context" in found["row-0"][0]["kept"]


def test_without_a_name_the_file_is_called_after_the_run(cbench: Cbench, tmp_path: Path) -> None:
    _run(cbench, "--builtin", "identity")
    assert cbench("report", "last").returncode == 0
    [path] = tmp_path.glob("cbench-*.html")
    assert path.read_text().startswith("<!doctype html>")
    assert [name for name in tmp_path.iterdir() if name.name.startswith(".")] == []


def test_systems_of_other_runs_are_compared_with_even_under_one_name(cbench: Cbench) -> None:
    _run(cbench, "--builtin", "truncate-tail", "--option", "ratio=0.9")
    _run(cbench, "--builtin", "truncate-tail", "--option", "ratio=0.1")
    [first] = [line.split()[0] for line in cbench("runs").stdout.splitlines()[3:]]
    written = cbench("report", "last", "--compare", first, "-o", "-")
    assert written.returncode == 0, written.stderr
    head = _parts(written.stdout)["report"]
    assert head["systems"] == ["truncate-tail", f"truncate-tail ({first})"]
    assert head["comparison"]["pairs"][0]["b"] == f"truncate-tail ({first})"


def test_a_comparison_that_was_asked_for_and_cannot_be_made_is_refused(
    cbench: Cbench, tmp_path: Path
) -> None:
    _run(cbench, "--builtin", "identity")
    first = cbench("runs").stdout.splitlines()[2].split()[0]
    itself = cbench("report", first, "--compare", "last", "-o", tmp_path / "page.html")
    assert "is the run itself" in complaint(itself)
    _run(cbench, "--builtin", "identity", dataset="long-notes")
    written = cbench("report", first, "--compare", "last", "-o", tmp_path / "page.html")
    assert written.returncode == 2
    assert "no example in common" in complaint(written)
    assert not (tmp_path / "page.html").exists()


def test_run_can_end_in_a_page_on_stdout(cbench: Cbench) -> None:
    finished = cbench(
        "run",
        "--dataset",
        "mini-qa",
        "-n",
        "3",
        "--builtin",
        "identity",
        "--quiet",
        "--output",
        "html",
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("<!doctype html>")
    assert finished.stdout.endswith("</html>\n")


def _at_a_terminal(environment: dict[str, str], folder: Path, *words: str) -> tuple[int, str, str]:
    """Run `cbench` with a terminal for its stdout; return exit code, stdout and stderr."""
    terminal, stdout = pty.openpty()
    command = [str(CBENCH), *words]
    done = preloaded.run(
        command, stdout=stdout, stderr=subprocess.PIPE, cwd=folder, env=environment, check=False
    )
    # Little enough to wait in the terminal's own buffer.
    os.write(stdout, b"\n")
    shown = os.read(terminal, 65536).decode()
    os.close(stdout)
    os.close(terminal)
    return done.returncode, shown, done.stderr.decode()


def test_nobody_gets_a_page_or_a_table_of_bytes_onto_a_terminal(
    environment: dict[str, str], tmp_path: Path
) -> None:
    run = ("run", "--dataset", "mini-qa", "-n", "2", "--builtin", "identity", "--quiet")
    code, shown, _ = _at_a_terminal(environment, tmp_path, *run, "--output", "html")
    [path] = tmp_path.glob("cbench-*.html")
    assert code == 0
    assert path.name in shown
    assert "<!doctype" not in shown
    code, shown, stderr = _at_a_terminal(
        environment, tmp_path, "export", "last", "--format", "parquet"
    )
    assert (code, shown.strip()) == (2, "")
    assert "pass -o FILE" in stderr


def test_a_file_that_cannot_be_written_is_named(cbench: Cbench, tmp_path: Path) -> None:
    _run(cbench, "--builtin", "identity")
    refused = cbench("report", "last", "-o", "no/such/folder/report.html")
    assert refused.returncode == 2
    assert "no/such/folder/report.html" in complaint(refused)
    (tmp_path / "folder").mkdir()
    taken = cbench("report", "last", "-o", "folder")
    assert taken.returncode == 2
    assert "cannot write folder: it is a folder" in complaint(taken)


def test_an_unknown_run_is_refused(cbench: Cbench) -> None:
    refused = cbench("report", "19990101")
    assert refused.returncode == 2
    assert 'no run "19990101"' in complaint(refused)


class _Judge(BaseHTTPRequestHandler):
    """Rates everything 4, with a reason."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        words = "The place is named. Rating: 4"
        answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": words}}]})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def judge() -> Iterator[str]:
    """A model that judges, over HTTP."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Judge) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_judges_words_are_in_the_report(cbench: Cbench, judge: str) -> None:
    _run(cbench, "--proxy", judge, "--judge-url", judge, "--judge-unqualified")
    written = cbench("report", "last", "-o", "-")
    assert written.returncode == 0, written.stderr
    said = _parts(written.stdout)["row-0"][0]["details"]["llm-judge"]
    assert "The place is named. Rating: 4" in json.dumps(said)


def test_a_judge_that_is_away_is_found_before_the_first_row(cbench: Cbench, judge: str) -> None:
    _run(cbench, "--proxy", judge, "-n", "1")
    rescored = cbench("rescore", "last", "--judge-url", "http://127.0.0.1:1", "--quiet")
    assert rescored.returncode == 1
    assert "the judge at http://127.0.0.1:1" in rescored.stderr
