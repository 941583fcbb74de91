"""`cbench run --sweep`: the curve of one system over measured tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_client.messages.convert import fields_from_proto
from cbench_server.cli.exits import UsageError
from cbench_server.cli.parser import build_parser
from cbench_server.cli.spec import build_spec, check_systems
from tests.cli.conftest import Cbench, Serve, complaint, strict
from tests.cli.test_controls import example
from tests.fixtures.model_server import ModelServer, clean_environment, server

__all__ = ["ModelServer", "clean_environment", "server"]


def points(run: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run["config"]["sweep"]["curve"]["points"]
    return found


def notes(run: dict[str, Any], code: str) -> list[str]:
    return [note["text"] for note in run["notes"] if note["code"] == code]


@pytest.fixture
def doors(tmp_path: Path) -> Path:
    path = tmp_path / "doors.jsonl"
    path.write_text("".join(f"{json.dumps(example(number))}\n" for number in range(12)))
    return path


def test_a_system_is_run_at_every_value_beside_the_whole_and_cuts_of_its_lengths(
    cbench: Cbench, serve: Serve, doors: Path
) -> None:
    done = cbench(
        *("run", "--system", serve("keeping"), "--sweep", "ratio=0.9,0.2,0.5"),
        *("--dataset", doors, "--output", "json"),
    )
    assert done.returncode == 0, done.stderr
    run = strict(done.stdout)
    names = [f"keeping:ratio={value}" for value in ("0.9", "0.2", "0.5")]
    assert run["systems"][:4] == [*names, "identity"]
    assert [run["config"]["sweep"][key] for key in ("option", "whole")] == ["ratio", "identity"]
    curve = run["config"]["sweep"]["curve"]
    assert [point["value"] for point in points(run)] == [0.2, 0.5, 0.9]
    for point in points(run):
        out = [r["context_tokens_out"] for r in run["rows"] if r["system"] == point["system"]]
        whole = [r["context_tokens_in"] for r in run["rows"] if r["system"] == point["system"]]
        assert point["tokens"] == pytest.approx(sum(out) / 12)
        assert point["share"] == pytest.approx(sum(out) / sum(whole))
        assert (point["score"], point["of_whole"]) == (1.0, 1.0)
    assert sorted(curve["controls"]) == ["random-drop", "truncate-head", "truncate-tail"]
    for cut in curve["controls"].values():
        assert [point["value"] for point in cut] == [0.2, 0.5, 0.9]
        assert all(a["tokens"] <= b["tokens"] for a, b in zip(cut, points(run), strict=True))
    assert curve["needed"]["state"] == "smallest"
    (said,) = notes(run, "SWEEP")
    assert said.startswith("95% of identity's answer_retained is kept from the smallest on: ratio")
    assert len(notes(run, "MATCHED_CONTROLS")) == 3

    table = cbench("show", "last").stdout
    assert "Sweep of ratio, on the 12 examples that all arms have" in table
    assert said in table
    assert "\nrandom-drop@" not in table
    compared = cbench("compare", "last", "--systems", "keeping:ratio=0.2,identity")
    assert compared.returncode == 0, compared.stderr


def test_what_is_never_reached_is_called_so(cbench: Cbench) -> None:
    done = cbench(
        *("run", "--builtin", "truncate-tail", "--sweep", "ratio=0.1,0.3"),
        *("--dataset", "mini-qa", "-n", "16", "--output", "json"),
    )
    run = strict(done.stdout)
    assert run["config"]["sweep"]["curve"]["needed"]["state"] == "not reached"
    (said,) = notes(run, "SWEEP")
    assert "is not reached: ratio=0.3, with 3" in said


def test_an_option_that_changes_nothing_is_asked_about(
    cbench: Cbench, serve: Serve, doors: Path
) -> None:
    done = cbench(
        *("run", "--system", serve("ignoring"), "--sweep", "raito=0.1,0.3"),
        *("--dataset", doors, "--output", "json"),
    )
    assert notes(strict(done.stdout), "SWEEP_FLAT") == [
        "All 2 points of the sweep gave the same on every example. Does the system take an "
        'option "raito"?'
    ]


def test_a_memory_is_swept_over_what_it_hands_over(cbench: Cbench) -> None:
    done = cbench(
        *("memory", "run", "--builtin", "last-n", "--sweep", "n=2,6"),
        *("--dataset", "mini-memory", "--output", "json"),
    )
    assert done.returncode == 0, done.stderr
    run = strict(done.stdout)
    assert run["systems"] == ["last-n:n=2", "last-n:n=6", "full-history"]
    two, six = points(run)
    assert two["tokens"] < six["tokens"]
    assert run["config"]["sweep"]["curve"]["controls"] == {}


def test_a_proxy_is_swept_over_the_prompt_tokens_it_reports(
    cbench: Cbench, server: ModelServer
) -> None:
    def step(handler: Any) -> None:
        body = handler.request_body
        words = len(str(body["messages"][-1]["content"]).split())
        tokens = round(words * body.get("keep", 1.0))
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        document = {"choices": [{"message": {"content": "no idea"}}], "usage": usage}
        handler.reply(200, json.dumps(document))

    server.steps.append(step)
    flags = ("--dataset", "mini-qa", "-n", "8", "--model", "m", "--output", "json")
    proxy = ("run", "--proxy", server.url, "--name", "p", "--sweep", "keep=0.2,0.6")
    run = strict(cbench(*proxy, "--direct", server.url, *flags).stdout)
    assert [point["system"] for point in points(run)] == ["p:keep=0.2", "p:keep=0.6"]
    assert points(run)[0]["share"] == pytest.approx(0.2, abs=0.02)
    assert run["config"]["sweep"]["whole"] == "direct"
    alone = strict(cbench(*proxy, *flags).stdout)
    (said,) = notes(alone, "SWEEP")
    assert said.endswith("is unknown: no arm of the run reads the whole context.")


def test_controls_of_a_sweep_can_be_left_out(cbench: Cbench) -> None:
    done = cbench(
        *("run", "--builtin", "truncate-tail", "--sweep", "ratio=0.1,0.3", "--controls", "none"),
        *("--dataset", "mini-qa", "-n", "8", "--output", "json"),
    )
    run = strict(done.stdout)
    names = ["truncate-tail:ratio=0.1", "truncate-tail:ratio=0.3", "identity"]
    assert run["systems"] == names
    assert len(run["rows"]) == 24
    assert run["config"]["sweep"]["curve"]["controls"] == {}
    assert len(notes(run, "SWEEP")) == 1


def _spec(*words: str) -> dict[str, Any]:
    args = build_parser().parse_args(["run", *words])
    check_systems(args)
    return build_spec(args, {}, {}, [], None)


def test_the_system_meant_is_the_only_one_or_the_one_named() -> None:
    flags = ["--builtin", "identity", "--system", "h:1", "--option", "h:1.keep=1"]
    one, low, high = _spec(*flags, "--sweep", "ratio=1,2.5")["systems"]
    assert "options" not in one
    assert [low["options"], high["options"]] == [{"keep": 1, "ratio": 1}, {"keep": 1, "ratio": 2.5}]
    assert (low["swept_option"], low["target"], low["name"]) == ("ratio", "h:1", "")
    named = _spec(*flags[:4], "--name", "x", "--name", "y", "--sweep", "y.ratio=1,2")["systems"]
    assert [system["name"] for system in named] == ["x", "y:ratio=1", "y:ratio=2"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--sweep", "ratio=1,2", "--sweep", "k=1,2"), "one option of one system; got ratio and k"),
        (("--sweep", "h:3.ratio=1,2"), 'no system "h:3" on this command line'),
        (("--system", "h:1", "--sweep", "h:1.ratio=1,2"), '"h:1" is the name of 2 systems'),
        (("--sweep", "ratio=1,2"), "there are 2 systems (h:1, h:2); say which one"),
    ],
)
def test_a_sweep_of_nobody_or_of_several_is_refused(flags: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError) as error:
        _spec("--system", "h:1", "--system", "h:2", *flags)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ("ratio", '"ratio" is not a sweep'),
        ("ratio=", '"" in "ratio=" is not a number'),
        ("ratio=0.1,x", '"x" in "ratio=0.1,x" is not a number'),
        ("ratio=0.1,nan", '"nan" in "ratio=0.1,nan" is not a number'),
        ("ratio=0.1", '"ratio=0.1" has one value'),
        ("ratio=0.1,0.10", '"ratio=0.1,0.10" has 0.1 twice'),
    ],
)
def test_a_sweep_that_cannot_be_read_is_refused(cbench: Cbench, sweep: str, words: str) -> None:
    done = cbench("run", "--builtin", "truncate-tail", "--sweep", sweep, "--dataset", "mini-qa")
    assert done.returncode == 2
    assert words in complaint(done)


def test_an_option_that_a_built_in_system_does_not_take_is_refused(cbench: Cbench) -> None:
    flags = ("--builtin", "truncate-tail", "--sweep", "raito=0.1,0.2", "--dataset", "mini-qa")
    assert 'has no option "raito"; did you mean "ratio"?' in complaint(cbench("run", *flags))


def _point(value: Any, **others: Any) -> dict[str, Any]:
    return {
        "builtin": "truncate-tail",
        "swept_option": "ratio",
        "options": {"ratio": value},
        **others,
    }


@pytest.mark.parametrize(
    ("systems", "words"),
    [
        ([_point(0.1)], "ratio=0.1 is one"),
        ([_point(0.1), _point(0.1)], "has ratio=0.1 twice"),
        ([_point(0.1), _point("half")], 'ratio="half" is none'),
        ([_point(0.1), _point(True)], 'ratio="True" is none'),
        (
            [_point(0.1), _point(0.2, builtin="truncate-head")],
            '"truncate-tail" and "truncate-head"',
        ),
        ([_point(0.1), _point(0.2, swept_option="k", options={"k": 1})], "got ratio and k"),
        ([_point(0.1), _point(0.2, options={})], "has no value of it"),
        ([_point(0.1), _point(0.2, role="SYSTEM_ROLE_CONTROL")], "is there as control"),
    ],
)
def test_points_that_are_no_curve_are_refused_over_the_wire(
    daemon_address: str, systems: list[dict[str, Any]], words: str
) -> None:
    with BenchClient(daemon_address) as client, pytest.raises(Refused) as error:
        client.start({"systems": systems, "datasets": [{"name": "mini-qa"}]})
    assert words in str(error.value)


@pytest.mark.parametrize("has_controls", [True, False])
def test_a_spec_in_python_sweeps_too(daemon_address: str, has_controls: bool) -> None:
    spec = {
        "systems": [_point(0.5), _point(0.9)],
        "datasets": [{"name": "mini-qa"}],
        "matched_controls": has_controls,
    }
    with BenchClient(daemon_address) as client:
        run_id = client.start(spec)
        assert [*client.watch(run_id)]
        run = client.get(run_id)
    config = fields_from_proto(run.config)
    curve = config["sweep"]["curve"]
    assert [point["value"] for point in curve["points"]] == [0.5, 0.9]
    assert len(curve["controls"]) == (2 if has_controls else 0)
    assert any(note.code == "SWEEP" for note in run.notes)
    (whole,) = [ref for ref in run.spec.systems if not ref.swept_option]
    assert whole.builtin == "identity"
