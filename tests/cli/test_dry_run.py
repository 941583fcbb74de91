"""`cbench run --dry-run` calls nobody; and the commit of what a run launches is on record."""

import json
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import SYSTEM, Cbench, complaint
from tests.fixtures.waiting import wait_until


@contextmanager
def counted() -> Iterator[tuple[str, list[object]]]:
    """Listen, and count who connects."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, peer = server.accept()
                except OSError:
                    return
                came.append(peer)
                connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", came
        server.shutdown(socket.SHUT_RDWR)
    thread.join(30)


def test_a_dry_run_calls_launches_and_stores_nothing(
    cbench: Cbench, tmp_path: Path, home: Path
) -> None:
    trace = tmp_path / "was-launched"
    launch = shlex.join([sys.executable, "-c", f"open({str(trace)!r}, 'w')"])
    with counted() as (system, a), counted() as (model, b), counted() as (evaluator, c):
        url = f"http://{model}"
        made = cbench(
            *("run", "--dry-run", "--dataset", "mini-qa", "-n", "6", "--repeats", "2"),
            *("--system", system, "--builtin", "identity", "--launch", launch),
            *("--proxy", url, "--reader", url, "--model", "m"),
            *("--reader-price", "1,2", "--proxy-price", "1,2"),
            *("--judge-url", url, "--judge-model", "j"),
            *("--evaluator", f"mine@{evaluator}", "--output", "json"),
        )
        assert made.returncode == 0, made.stderr
        assert (a, b, c) == ([], [], [])
        # The listeners do count.
        for address in (system, model, evaluator):
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port))).close()
        wait_until(lambda: [len(each) for each in (a, b, c)] == [1, 1, 1])
    assert not trace.exists()
    assert not (home / "cbench.db").exists()
    told = json.loads(made.stdout)
    assert told["rows"] == 6 * 4 * 2
    assert told["calls"]["systems"] == 48
    assert told["calls"]["reader"] == 36
    assert told["calls"]["evaluator mine"] == 48
    assert told["calls"]["evaluator llm-judge"] == 48
    assert {system, url, evaluator} <= set(told["addresses"].values())
    assert told["tokens"]["given to systems"] > 0
    assert told["usd"] > 0


@pytest.mark.parametrize(
    ("flags", "rows"),
    [
        (("--launch", "./mine", "--option", "one.ratio=1"), 4),
        (("--launch", "./mine", "--name", "x", "--option", "one.ratio=1"), 4),
        (("--launch", "./mine", "--sweep", "one.ratio=0.1,0.2,0.3"), 10),
        (("--launch", "./mine", "--only-system", "one", "--only-system", "two"), 6),
        (("--system", "127.0.0.1:1", "--option", "one.ratio=1"), 4),
    ],
)
def test_names_that_only_a_process_knows_are_believed_and_told(
    cbench: Cbench, flags: tuple[str, ...], rows: int
) -> None:
    run = ("run", *flags, "--builtin", "truncate-tail", "--dataset", "mini-qa", "-n", "2")
    told = json.loads(cbench(*run, "--dry-run", "--output", "json").stdout)
    assert told["rows"] == rows
    [note] = [note for note in told["notes"] if "only the run can tell" in note]
    assert f"{flags[1]} serves one" in note
    unknown = ("run", "--builtin", "identity", "--option", "one.ratio=1", "--dataset", "mini-qa")
    assert 'no system "one" on this command line' in complaint(cbench(*unknown, "--dry-run"))


def test_the_rows_and_tokens_are_those_of_the_run(cbench: Cbench) -> None:
    flags = ("run", "--builtin", "identity", "--builtin", "truncate-head", "--dataset", "mini-qa")
    told = json.loads(cbench(*flags, "--dry-run", "--output", "json").stdout)
    rows = json.loads(cbench(*flags, "--output", "json", "--quiet").stdout)["rows"]
    assert told["rows"] == len(rows)
    assert told["tokens"]["given to systems"] == sum(row["input_tokens"] for row in rows)
    assert told["usd"] is None


def test_a_dry_run_of_memories_tells_the_same_and_calls_nobody(cbench: Cbench, home: Path) -> None:
    flags = ("memory", "--builtin", "bm25", "--builtin", "full-history", "--dataset", "mini-memory")
    with counted() as (system, a), counted() as (model, b):
        url = f"http://{model}"
        models = ("--reader", url, "--model", "m", "--reader-price", "1,2", "--judge-url", url)
        prices = ("--judge-model", "j", "--judge-price", "1,2")
        made = cbench(*flags, "--system", system, *models, *prices, "--dry-run", "--output", "json")
        assert made.returncode == 0, made.stderr
        assert (a, b) == ([], [])
    assert not (home / "cbench.db").exists()
    told = json.loads(made.stdout)
    rows = json.loads(cbench(*flags, "--output", "json", "--quiet").stdout)["rows"]
    assert told["rows"] * 2 == len(rows) * 3
    assert told["calls"]["systems"] == told["calls"]["reader"] == told["rows"]
    assert told["calls"]["evaluator memory-judge"] == told["rows"]
    talks = len({row["group"] for row in rows})
    assert told["calls"]["systems, to forget and take in conversations"] == 3 * 3 * talks
    assert {system, url} == set(told["addresses"].values())
    # A memory that hands on everything is the most that is read.
    whole = sum(row["input_tokens"] for row in rows if row["system"] == "full-history")
    assert told["tokens"]["read by the reader, at most"] > 3 * whole
    assert told["usd"] > 0


def test_files_are_counted_and_mistakes_found(cbench: Cbench, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    lines = [{"id": str(n), "context": "a", "question": "b", "answer": "c"} for n in range(7)]
    own.write_text("\n".join(json.dumps(line) for line in lines))
    flags = ("run", "--dry-run", "--builtin", "identity", "--dataset")
    assert "rows       7:" in cbench(*flags, own).stdout
    assert "mini-qaa" in complaint(cbench(*flags, "mini-qaa"))
    assert "answer-qualiti" in complaint(cbench(*flags, "mini-qa", "--evaluator", "answer-qualiti"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--budget-usd", "1"], "price"),
        (["--tokenizer", "no-such"], "no-such"),
        (["--metric", "no-such"], "no-such"),
        (["--http", "ftp://x"], "is not a URL"),
        (["--launch", "python 'x"], "cannot launch"),
        (["--score-field", "zz"], 'no evaluator of this run gives "zz"'),
        (["--max-failures", "120%"], "is more than all"),
    ],
    ids=["budget", "tokenizer", "metric", "http", "launch", "score-field", "max-failures"],
)
def test_a_dry_run_refuses_what_the_run_would(cbench: Cbench, flags: list[str], said: str) -> None:
    asked = ("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "2", *flags)
    dry, real = cbench(*asked, "--dry-run"), cbench(*asked)
    assert dry.returncode == real.returncode == 2, (dry.stderr, real.stderr)
    assert said in complaint(dry)
    assert complaint(dry) == complaint(real)


@pytest.mark.parametrize("state", ["clean", "changed", "untracked", "unreadable"])
def test_the_commit_of_a_launched_program_is_in_the_config(
    cbench: Cbench, tmp_path: Path, state: str
) -> None:
    repository = tmp_path / "theirs"
    repository.mkdir()
    program = repository / "system.py"
    program.write_text(SYSTEM.read_text())
    other = repository / "other.txt"
    other.write_text("1")

    def git(*words: str) -> str:
        named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", *named, "-C", str(repository), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", "other.txt", *(() if state == "untracked" else ("system.py",)))
    git("commit", "-qm", "first")
    if state == "changed":
        other.write_text("2")
    if state == "unreadable":
        (repository / ".git" / "index").write_bytes(b"no index")
    launch = shlex.join([sys.executable, str(program), "answering"])
    made = cbench("run", "--launch", launch, "--dataset", "mini-qa", "-n", "2", "--output", "json")
    assert made.returncode == 0, made.stderr
    [system] = json.loads(made.stdout)["config"]["systems"]
    assert system["source"] == {"commit": git("rev-parse", "HEAD"), "dirty": state != "clean"}


@pytest.mark.parametrize("flag", ["--predictions", "--labels", "--errata"])
def test_files_that_the_run_would_not_take_are_refused(
    flag: str, cbench: Cbench, tmp_path: Path
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    words = ("run", "--builtin", "identity", "--dataset", "mini-qa", "--dry-run", flag)
    for file, why in [
        ("mini-qa", "the format of mini-qa is not known"),
        ("absent.jsonl", "absent.jsonl"),
        ("empty.jsonl", "empty.jsonl contains no examples"),
    ]:
        done = cbench(*words, file)
        assert done.returncode == 2
        assert why in complaint(done)


@pytest.mark.parametrize("kind", ["run", "memory"])
def test_a_dry_run_names_local_models_and_serves_none(
    cbench: Cbench, tmp_path: Path, kind: str
) -> None:
    # It could not be served: there is nothing in it.
    model = tmp_path / "mine.gguf"
    model.write_bytes(b"GGUF")
    local = f"local:{model}"
    process = ("run", "--builtin", "identity", "--dataset", "mini-qa", "--proxy", local)
    memory = ("memory", "run", "--builtin", "last-n", "--dataset", "mini-memory")
    given = process if kind == "run" else memory
    made = cbench(
        *(*given, "-n", "2", "--dry-run", "--output", "json"),
        *("--reader", local, "--judge", local, "--reader-price", "1,2"),
    )
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    others = {
        "run": {"system mine": local, "evaluator llm-judge": local},
        "memory": {"evaluator memory-judge": local},
    }
    assert told["addresses"] == {"reader": local, **others[kind]}
    assert told["calls"]["reader"] > 0
    gone = cbench(*given, "-n", "2", "--dry-run", "--reader", "local:/nowhere.gguf")
    assert gone.returncode != 0
    assert "/nowhere.gguf" in complaint(gone)
