"""`local` in the place of a URL: what is missing, what cannot be reached, what is not there."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench
from tests.fixtures.likelihood_servers import serving

RUN = ("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "1")


@pytest.mark.parametrize(
    "flags",
    [
        ("--reader", "local"),
        ("--judge", "local"),
        ("--likelihood", "local"),
        ("--proxy", "local"),
    ],
    ids=["reader", "judge", "likelihood", "proxy"],
)
def test_without_the_model_the_one_command_is_named(
    cbench: Cbench, tmp_path: Path, flags: tuple[str, str]
) -> None:
    done = cbench(*RUN, *flags, CBENCH_MODELS=str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("Get it with: cbench model fetch")
    assert done.stderr.count("cbench model fetch") == 1


def test_another_file_is_checked_before_anything_is_started(cbench: Cbench, tmp_path: Path) -> None:
    done = cbench(*RUN, "--reader", f"local:{tmp_path}/none.gguf")
    assert done.returncode == 2
    assert f"{tmp_path}/none.gguf" in done.stderr


def test_a_daemon_elsewhere_cannot_reach_it(cbench: Cbench) -> None:
    done = cbench(*RUN, "--reader", "local", "--server", "bench.example:50051")
    assert done.returncode == 2
    assert "cbench model serve" in done.stderr
    assert "bench.example:50051" in done.stderr


def test_the_settings_of_a_likelihood_need_it(cbench: Cbench) -> None:
    done = cbench(*RUN, "--likelihood-model", "m")
    assert done.returncode == 2
    assert "--likelihood-model needs --likelihood URL" in done.stderr


def test_model_list_tells_what_is_there(cbench: Cbench, tmp_path: Path) -> None:
    done = cbench("model", "list", "--output", "json", CBENCH_MODELS=str(tmp_path / "none"))
    assert [each["path"] for each in json.loads(done.stdout)] == [None, None]
    done = cbench("model", "path", CBENCH_MODELS=str(tmp_path / "none"))
    assert done.returncode == 1
    assert "cbench model fetch" in done.stderr
    done = cbench("model", "remove", CBENCH_MODELS=str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "nothing was fetched\n")


def test_a_run_shows_how_much_of_the_likelihood_was_kept(cbench: Cbench, tmp_path: Path) -> None:
    data = tmp_path / "names.jsonl"
    rows = [
        {"context": f"It is name{n}. It rains.", "question": "Name?", "answer": f"name{n}"}
        for n in range(8)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving("vllm") as server:
        likelihood = ("--likelihood", server.url, "--likelihood-model", "m")
        command = ("run", "--builtin", "identity", "--builtin", "no-context", "--dataset", data)
        done = cbench(*command, *likelihood, "--ask-again", "0", "--quiet")
        assert done.returncode == 0, done.stderr
        assert "Likelihood kept" in done.stdout
        assert "0 is no context, 1 the whole of it" in done.stdout
        shown = cbench("show", "last", "--output", "json")
        again = cbench("rescore", "last", *likelihood, "--output", "json", "--quiet")
    summary = json.loads(shown.stdout)["summary"]
    assert summary["identity"]["likelihood_retention"] == 1.0
    assert summary["no-context"]["likelihood_retention"] == 0.0
    assert json.loads(again.stdout)["summary"]["identity"]["likelihood_room"] == 4.0
    compared = cbench(
        "compare", "last", "--score-field", "answer_gain", "--systems", "identity,no-context"
    )
    assert "identity is better than no-context on answer_gain by 4" in compared.stdout


def test_a_server_that_cannot_tell_stops_the_run_before_its_first_row(cbench: Cbench) -> None:
    with serving("echo") as server:
        server.lie = "no echo"
        done = cbench(*RUN, "--likelihood", server.url)
    assert done.returncode != 0
    assert "does not tell how likely given tokens are" in done.stderr
    assert "answer-likelihood" in done.stderr
