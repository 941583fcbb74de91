"""Anchors as a person meets them: in the table, apart from the systems, and never compared."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cbench, complaint, strict
from tests.fixtures.model_server import Handler, ModelServer, clean_environment, server

__all__ = ["clean_environment", "server"]

_ROWS = 12


@pytest.fixture
def doors(tmp_path: Path) -> Path:
    path = tmp_path / "doors.jsonl"
    lines = [
        {
            "id": number,
            "context": f"The code of door {number} is zebra{number}. And so they went home.",
            "question": f"What is the code of door {number}?",
            "answer": f"zebra{number}",
        }
        for number in range(_ROWS)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def reading(server: ModelServer) -> None:
    """Say the code where it can be read."""

    def step(handler: Handler) -> None:
        text = handler.request_body["messages"][-1]["content"]
        found = re.findall(r"zebra\d+", text)
        body = {"choices": [{"message": {"content": found[0] if found else "unknown"}}]}
        handler.reply(200, json.dumps(body))

    server.steps.append(step)


def test_anchors_stand_apart_and_are_not_compared_or_gated(
    cbench: Cbench, doors: Path, server: ModelServer
) -> None:
    reading(server)
    flags = ("--reader", server.url, "--model", "m", "--dataset", doors)
    table = cbench("run", "--builtin", "truncate-head", *flags).stdout
    ranked, _, apart = table.partition("Anchors, never ranked")
    assert "@reader" not in ranked
    assert re.search(r"identity@reader +1\.000", apart)
    assert re.search(r"no-context@reader +0\.000", apart)
    assert f"differed from itself in its score on 0 of {_ROWS} rows" in apart
    assert f"0.0% (95% CI 0.0% to 24.2%) of {_ROWS} questions are answered without" in apart
    shown = strict(cbench("show", "last", "--output", "json").stdout)
    assert shown["roles"]["no-context@reader"] == "anchor"
    assert "has one system to compare" in complaint(cbench("compare", "last"))
    named = cbench("compare", "last", "--systems", "truncate-head,identity@reader")
    assert '"identity@reader" is an anchor' in complaint(named)
    gated = cbench("gate", "last", "--policy", "failures at most 0")
    assert gated.returncode == 0, gated.stderr
    assert "truncate-head: passes" in gated.stdout
    refused = cbench(
        "gate", "last", "--policy", "failures at most 0", "--system", "identity@reader"
    )
    assert '"identity@reader" is an anchor' in complaint(refused)
    assert "@reader" not in cbench("runs").stdout
    exported = cbench("export", "last", "--format", "csv").stdout
    marks = {row["system"]: row["marks"] for row in csv.DictReader(io.StringIO(exported))}
    assert marks["identity-again@reader"] == "ANCHOR"
    assert "ANCHOR" not in marks["truncate-head"]


def test_they_can_be_left_out(cbench: Cbench, doors: Path, server: ModelServer) -> None:
    reading(server)
    finished = cbench(
        *("run", "--builtin", "identity", "--reader", server.url, "--model", "m"),
        *("--dataset", doors, "--no-anchors", "--output", "json"),
    )
    run: dict[str, Any] = strict(finished.stdout)
    assert {row["system"] for row in run["rows"]} == {"identity"}
    assert not {note["code"] for note in run["notes"]} & {"NOISE_FLOOR", "GUESSABLE"}
