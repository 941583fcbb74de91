"""Bad input and broken surroundings: one clear line, no traceback, the right exit code."""

import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import CBENCH, Cbench, complaint
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port


@pytest.fixture
def http_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--builtin", "identiy"], 'no system "identiy"; did you mean "identity"?'),
        (["--dataset", "mini-q"], 'no dataset "mini-q"; did you mean "mini-qa"?'),
        (["--dataset", "mini-qa:x"], 'dataset "mini-qa" has no configs'),
        (["--evaluator", "answer-qualty"], 'did you mean "answer-quality"?'),
        (["--metric", "mean-scor"], 'did you mean "mean-score"?'),
        (["--tokenizer", "cl100k"], 'did you mean "cl100k_base"?'),
        (["--option", "ratio=0.5"], 'no system of the run has the option "ratio": identity'),
        (["--max-failures", "some"], 'not "some"'),
        (["--dataset", "nowhere.jsonl"], "nowhere.jsonl does not exist"),
        (["--import", "no_such_module"], 'cannot import "no_such_module"'),
        (["--import", "./mine.py"], "that is a file; give the module's name, such as mine"),
        (["--token", "x"], "--token needs --server."),
        (["--system-ca", "nowhere.pem"], "cannot read nowhere.pem"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be_meant_is_bad_input(cbench: Cbench, words: list[str], expected: str) -> None:
    defaults = ["--builtin", "identity"] if "--builtin" not in words else []
    defaults += ["--dataset", "mini-qa"] if "--dataset" not in words else []
    finished = cbench("run", *defaults, *words)
    assert finished.returncode == 2, finished.stderr
    assert expected in complaint(finished)
    assert finished.stdout == ""


def test_a_system_that_is_not_there_is_named(cbench: Cbench) -> None:
    target = f"localhost:{held_port()}"
    finished = cbench("run", "--system", target, "--dataset", "mini-qa")
    assert finished.returncode == 1
    assert f"nothing listens at {target}" in complaint(finished)


def test_waiting_for_a_system_has_an_end(cbench: Cbench) -> None:
    target = f"localhost:{held_port()}"
    finished = cbench("run", "--system", target, "--dataset", "mini-qa", "--wait", "500ms")
    assert finished.returncode == 1
    assert f"waiting: nothing listens at {target}" in finished.stderr
    assert "nothing listens" in complaint(finished)


def test_a_port_that_speaks_something_else_is_named(cbench: Cbench, http_port: int) -> None:
    target = f"127.0.0.1:{http_port}"
    system = cbench("run", "--system", target, "--dataset", "mini-qa")
    daemon = cbench("runs", "--server", target)
    variable = cbench("runs", CBENCH_SERVER=target)
    for finished in (system, daemon, variable):
        assert finished.returncode == 1
        assert f"{target} is an HTTP/1 server, not a gRPC one" in complaint(finished)


def test_a_daemon_that_is_not_there_is_named(cbench: Cbench) -> None:
    finished = cbench("runs", "--server", f"127.0.0.1:{held_port()}")
    assert finished.returncode == 1
    assert "nothing listens" in complaint(finished)


def test_a_token_is_not_sent_in_the_clear(cbench: Cbench) -> None:
    finished = cbench("runs", "--server", "192.0.2.1:50051", CBENCH_TOKEN="secret")
    assert finished.returncode == 2
    assert "Pass --tls, or --tls-ca FILE" in complaint(finished)
    assert "secret" not in finished.stderr


def test_tls_against_a_plain_daemon_says_so_in_flags(cbench: Cbench, daemon_address: str) -> None:
    finished = cbench("runs", "--server", daemon_address, "--tls")
    assert finished.returncode == 1
    assert "Drop --tls" in complaint(finished)


def test_modules_are_imported_by_the_daemon_itself(cbench: Cbench) -> None:
    finished = cbench("datasets", "--server", "127.0.0.1:1", "--import", "mine")
    assert finished.returncode == 2
    assert "Start the daemon at 127.0.0.1:1 with --import mine" in complaint(finished)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_directory_that_cannot_be_written_is_named(cbench: Cbench, home: Path) -> None:
    home.mkdir(mode=0o500)
    finished = cbench("run", "--builtin", "identity", "--dataset", "mini-qa")
    assert finished.returncode == 1
    assert "set CBENCH_HOME" in complaint(finished)


def test_a_data_directory_that_cannot_exist_is_named(cbench: Cbench, home: Path) -> None:
    home.write_text("a file")
    finished = cbench("runs")
    assert finished.returncode == 1
    assert str(home) in complaint(finished)


def test_a_store_that_is_none_is_named(cbench: Cbench, home: Path) -> None:
    home.mkdir()
    (home / "cbench.db").write_text("not a database, but long enough to be taken for one" * 100)
    finished = cbench("runs")
    assert finished.returncode == 1
    assert "is damaged or is not a cbench store" in complaint(finished)
    examined = cbench("doctor")
    assert examined.returncode == 1
    assert "fail  store:" in examined.stdout


def test_debugging_shows_where_an_error_arose(cbench: Cbench) -> None:
    finished = cbench("show", "last", CBENCH_DEBUG="1")
    assert finished.returncode == 2
    assert "Traceback" in finished.stderr


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("topic=x", 'no example has a field "topic"; there are: id, context, question, answer'),
        ("answer=nobody", "no example has answer=nobody; check --where"),
    ],
    ids=["field", "value"],
)
def test_a_filter_that_leaves_nothing_is_explained(
    cbench: Cbench, condition: str, reason: str
) -> None:
    run = cbench("run", "--builtin", "identity", "--dataset", "mini-qa", "--where", condition)
    assert run.returncode == 2
    assert reason in complaint(run)
    assert reason not in run.stdout


def test_a_column_of_another_name_is_answered_with_the_flag_that_names_it(
    cbench: Cbench, tmp_path: Path
) -> None:
    (tmp_path / "odd.jsonl").write_text('{"passage": "a b", "query": "b", "answer": "b"}\n')
    words = ["run", "--builtin", "identity", "--dataset", "odd.jsonl", "--quiet"]
    run = cbench(*words)
    assert complaint(run).endswith("Name the field that holds it: --map context=FIELD")
    assert "Look closer" not in run.stdout  # There is no row to look at.
    assert '"context" is missing' not in run.stdout
    assert cbench(*words, "--map", "context=passage,question=query").returncode == 0


def test_what_resuming_cannot_mend_is_said_once_and_without_that_advice(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "odd.jsonl").write_text('{"passage": "a", "query": "b"}\n')
    words = ["run", "--builtin", "identity", "--dataset", "odd.jsonl", "--quiet"]
    finished = preloaded.run(
        [str(CBENCH), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        cwd=tmp_path,
        env=environment,
    )
    assert finished.returncode in (1, 2)
    assert finished.stdout.count('"context" is missing') == 1, finished.stdout
    assert "resume" not in finished.stdout


def test_a_hub_out_of_reach_is_named_at_once(cbench: Cbench) -> None:
    """The libraries below would try again for half a minute."""
    hub = f"http://127.0.0.1:{held_port()}"
    words = ["--dataset", "hotpotqa", "-n", "1", "--quiet"]
    finished = cbench("run", "--builtin", "identity", *words, HF_ENDPOINT=hub, HF_HUB_OFFLINE="0")
    assert finished.returncode == 1
    assert f"cannot reach {hub}: Connection refused" in complaint(finished)
    assert "cbench resume" in finished.stdout
