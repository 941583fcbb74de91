"""Runs on the datasets: through a daemon, from a mirror, without a network."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_client.messages.convert import value_from_proto
from cbench_server.daemon.embedded import embedded
from cbench_server.datasets import RECORDS
from cbench_server.registry import registry
from tests.fixtures import preloaded

from .hub_server import BEHIND_DATASETS
from .test_records import FIXTURES, GOLDEN, HUB_RECORDS


@pytest.fixture
def client(tmp_path: Path) -> Iterator[BenchClient]:
    """A client of a daemon that has the fixtures as its mirror."""
    inside = embedded(home=str(tmp_path), data_dir=str(FIXTURES))
    with inside as target, BenchClient(target) as connected:
        yield connected
    registry.data_dir = ""


def _run(client: BenchClient, *datasets: dict[str, Any], **spec: Any) -> tuple[Any, list[str]]:
    spec = {"systems": [{"builtin": "identity"}], **spec, "datasets": list(datasets)}
    for _ in client.evaluate(spec):
        pass
    (run,) = client.list()
    return client.get(run.run_id), [row.example_id.text for row in client.rows(run.run_id)]


def _upload(client: BenchClient, count: int) -> dict[str, Any]:
    examples = [{"id": f"e{n}", "context": "c", "kind": str(n % 2)} for n in range(count)]
    return {"name": "mine", "upload": client.upload(examples)[0]}


def _count(name: str) -> int:
    """Count the examples; a conversation is as many as are asked about it."""
    # A needle is at many depths of a book.
    known = GOLDEN.get(name, [{}] * 5)
    return sum(len(example.get("qa_pairs", [example])) for example in known)


def test_every_dataset_runs_with_exactly_its_evaluators(client: BenchClient) -> None:
    datasets = [
        {"name": r.name, "max_examples": 5, "as_transcript": r.family == "memory"}
        for r in HUB_RECORDS
    ]
    run, ids = _run(client, *datasets)
    assert not [row for row in client.rows(run.run_id) if row.HasField("failure")]
    assert len(ids) == sum(min(5, _count(record.name)) for record in HUB_RECORDS)
    described_all = value_from_proto(run.config["datasets"])
    for record, described in zip(HUB_RECORDS, described_all, strict=True):
        wired = [evaluator["name"] for evaluator in described["evaluators"]]
        assert wired == [*record.evaluators, "context-retention"]
        assert described["split"] == record.split
        assert described["files"]


def test_a_run_says_on_which_axes_it_is_not_the_official_one(client: BenchClient) -> None:
    run, _ = _run(
        client,
        {"name": "hotpotqa"},
        {"name": "gsm8k", "max_examples": 1},
        {"name": "hotpotqa", "config": "fullwiki"},
    )
    some, part, whole = value_from_proto(run.config["datasets"])
    # The fixtures hold a few examples of each.
    assert some["protocol"]["axes"]["data"] == {
        "status": "differs",
        "why": f"Of 7,405 examples {_count('hotpotqa')} were there.",
    }
    assert {name: axis["status"] for name, axis in whole["protocol"]["axes"].items()} == {
        "data": "differs",
        "prompt": "differs",
        "metric": "same",
        "aggregation": "same",
    }
    assert whole["is_official_metric"]
    assert part["protocol"]["axes"]["data"]["status"] == "differs"
    assert part["evaluators"][1]["options"]["rule"] == "gsm8k"


def test_another_score_is_not_the_official_metric(client: BenchClient) -> None:
    run, _ = _run(client, {"name": "hotpotqa"}, score_field="contains")
    (described,) = value_from_proto(run.config["datasets"])
    assert not described["is_official_metric"]
    said = described["protocol"]["axes"]["metric"]["why"]
    assert said == "The run counts contains instead of hotpotqa_f1."


@pytest.mark.parametrize(
    ("asked", "spec", "axis", "said"),
    [
        ({"mapping": {"answer": "question"}}, {}, "data", "The run made answer from other fields."),
        ({"where": {"level": "hard"}}, {}, "data", "those with level hard"),
        ({}, {"expose_reference_fields": True}, "data", "Systems were shown answer"),
        (
            {},
            {"evaluators": [{"name": "hotpotqa", "options": {"strip_thinking": False}}]},
            "metric",
            "",
        ),
    ],
    ids=["mapping", "where", "exposed", "thinking"],
)
def test_what_a_run_does_otherwise_is_on_its_axis(
    client: BenchClient, asked: dict[str, Any], spec: dict[str, Any], axis: str, said: str
) -> None:
    run, _ = _run(client, {"name": "hotpotqa", **asked}, **spec)
    (described,) = value_from_proto(run.config["datasets"])
    found = described["protocol"]["axes"][axis]
    assert found["status"] == ("differs" if said else "same")
    assert said in found["why"]


@pytest.mark.parametrize(
    ("name", "config", "published"),
    [("hotpotqa", "fullwiki", 7_405), ("longbench", "passage_count", 200)],
)
def test_a_mirror_with_a_part_of_any_config_is_told(
    client: BenchClient, name: str, config: str, published: int
) -> None:
    run, ids = _run(client, {"name": name, "config": config})
    (described,) = value_from_proto(run.config["datasets"])
    said = described["protocol"]["axes"]["data"]
    assert said["status"] == "differs"
    assert f"Of {published:,} examples {len(ids)} were there." in said["why"]


@pytest.mark.parametrize(("name", "published"), [("locomo", 1_986), ("longmemeval", 500)])
@pytest.mark.parametrize("kind", ["memory", "systems"])
def test_a_mirror_with_a_part_of_the_questions_is_told(
    client: BenchClient, name: str, published: int, kind: str
) -> None:
    is_memory = kind == "memory"
    spec = {"kind": "memory", "systems": [{"builtin": "last-n"}]} if is_memory else {}
    run, ids = _run(client, {"name": name, "as_transcript": not is_memory}, **spec)
    (described,) = value_from_proto(run.config["datasets"])
    said = described["protocol"]["axes"]["data"]
    assert said["status"] == "differs"
    assert f"Of {published:,} questions {len(ids)} were there." in said["why"]


def test_a_choice_of_types_is_said_and_the_rest_is_not_missing(client: BenchClient) -> None:
    spec = {"kind": "memory", "systems": [{"builtin": "last-n"}], "question_types": ["temporal"]}
    run, _ = _run(client, {"name": "locomo"}, **spec)
    (described,) = value_from_proto(run.config["datasets"])
    why = described["protocol"]["axes"]["data"]["why"]
    assert "Of the questions those of temporal were asked." in why
    assert "were there" not in why


def test_another_setting_of_the_evaluator_is_not_the_official_metric(client: BenchClient) -> None:
    own = [{"name": "multiple-choice", "options": {"extraction": "mmlu-pro"}}]
    run, _ = _run(client, {"name": "gpqa"}, evaluators=own, replace_evaluators=True)
    (described,) = value_from_proto(run.config["datasets"])
    assert not described["is_official_metric"]
    assert described["protocol"]["axes"]["metric"]["why"] == "multiple-choice had other settings."


def test_an_evaluator_that_is_added_does_not_cost_the_headline(client: BenchClient) -> None:
    run, _ = _run(client, {"name": "gsm8k"}, evaluators=[{"name": "math-equivalence"}])
    (described,) = value_from_proto(run.config["datasets"])
    assert described["primary_score"] == "gsm8k_flexible"
    assert {"gsm8k_flexible", "math_equiv"} <= {*described["scores"]}


def test_a_dataset_that_only_a_harness_can_score_has_no_headline(client: BenchClient) -> None:
    run, _ = _run(client, {"name": "swebench"})
    (described,) = value_from_proto(run.config["datasets"])
    assert described["primary_score"] == ""
    assert described["protocol"]["axes"]["metric"]["status"] == "external"
    (row,) = client.rows(run.run_id)
    assert "" in row.not_applicable


def test_the_card_of_a_config_is_sent(client: BenchClient) -> None:
    listed = {info.name: info for info in client.components().datasets}
    cards = {config: card for card in listed["longbench"].protocols for config in card.configs}
    assert cards["trec_e"].evaluators[1].options["task"].string_value == "trec"
    assert cards["trec_e"].axes["metric"].status == "same"
    assert listed["hotpotqa"].split_here == "validation"


def test_the_daemon_says_which_datasets_it_has(client: BenchClient) -> None:
    listed = {info.name: info for info in client.components().datasets}
    assert all(listed[record.name].available for record in RECORDS)
    assert listed["gsm8k"].source == "openai/gsm8k"
    assert listed["mgsm"].configs[:3] == ["bn", "de", "en"]
    assert {name: info.citation for name, info in listed.items()} == {
        record.name: record.citation for record in RECORDS
    }


def test_a_shuffled_run_takes_other_examples_and_the_same_ones_again(client: BenchClient) -> None:
    upload = {**_upload(client, 200), "shuffle": True, "max_examples": 20}
    orders = []
    for seed in (1, 1, 2):
        spec = {"systems": [{"builtin": "identity"}], "datasets": [upload], "seed": seed}
        run_id = client.start(spec)
        for _ in client.watch(run_id):
            pass
        orders.append([row.example_id.text for row in client.rows(run_id)])
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != [f"e{n}" for n in range(20)]


def test_a_filter_comes_before_the_cap(client: BenchClient) -> None:
    upload = {**_upload(client, 10), "where": {"kind": "1"}, "max_examples": 3}
    assert _run(client, upload)[1] == ["e1", "e3", "e5"]


def test_rows_carry_the_registered_name_whichever_was_asked_for(client: BenchClient) -> None:
    names = [{"name": "mini_qa"}, {"name": "swe_agent_traces"}, {"name": "bbh"}]
    names[2]["config"] = "boolean-expressions"
    spec = {"systems": [{"builtin": "identity"}], "datasets": names}
    run_id = client.start(spec, request_id="once")
    for _ in client.watch(run_id):
        pass
    labels = {row.dataset for row in client.rows(run_id)}
    assert labels == {"mini-qa", "swebench-lite", "bbh:boolean_expressions"}
    assert client.start(spec, request_id="once") == run_id


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"name": "mgsm", "config": "xx"}, 'has no config "xx"; it has: bn'),
        ({"name": "nolima", "split": "train"}, '"nolima" has no splits'),
        ({"name": "mini-qa", "split": "train"}, '"mini-qa" has no split; leave out split "train"'),
        ({"name": "mini-qa", "revision": "v1"}, '"mini-qa" has no revision'),
        ({"name": "mini-ga"}, 'no dataset "mini-ga"; did you mean "mini-qa"'),
    ],
    ids=["config", "split", "embedded-split", "embedded-revision", "name"],
)
def test_what_cannot_be_read_is_refused_before_the_run(
    client: BenchClient, dataset: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        client.start({"systems": [{"builtin": "identity"}], "datasets": [dataset]})


@pytest.fixture
def cbench(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the real command on a store of the test's own."""
    program = Path(sys.executable).parent / "cbench"
    inherited = {key: text for key, text in os.environ.items() if not key.startswith("CBENCH_")}

    def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
        return preloaded.run(
            [program, *args],
            capture_output=True,
            text=True,
            env={**inherited, "CBENCH_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
            preload=BEHIND_DATASETS,
        )

    return run


def _ids(output: str) -> list[str]:
    return [json.loads(line)["example_id"] for line in output.splitlines()]


def test_the_flags_choose_examples(
    cbench: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    rows = [{"id": f"e{n}", "context": "c", "kind": str(n % 2)} for n in range(40)]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = ("run", "--builtin", "identity", "--output", "jsonl", "--dataset", file, "-n", "10")
    # Rows are printed as they are made, so only which they are is fixed.
    odd = {*_ids(cbench(*run, "--where", "kind=1").stdout)}
    assert odd == {f"e{n}" for n in range(1, 20, 2)}
    drawn = {*_ids(cbench(*run, "--shuffle", "--seed", "3").stdout)}
    assert drawn == {*_ids(cbench(*run, "--shuffle", "--seed", "3").stdout)}
    assert drawn != {f"e{n}" for n in range(10)}
    assert len(drawn) == 10


def test_the_data_directory_is_a_flag_of_the_embedded_daemon(
    cbench: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    run = ("run", "--builtin", "identity", "--dataset", "gsm8k", "--output", "jsonl")
    done = cbench(*run, "--data-dir", FIXTURES)
    assert (done.returncode, _ids(done.stdout)) == (0, [0])
    refused = cbench(*run, "--data-dir", FIXTURES, "--server", "127.0.0.1:9")
    assert "--data-dir only works without --server" in refused.stderr
    shown = cbench("datasets", "show", "gsm8k", "--data-dir", FIXTURES)
    assert "2 boxes of 9?" in shown.stdout.partition("A system does not see")[0]
    assert "#### 18" in shown.stdout.partition("A system does not see")[2]


def test_a_run_without_data_says_which_file_to_put_where(
    cbench: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = cbench("run", "--builtin", "identity", "--dataset", "gsm8k", "--split", "train")
    assert done.returncode == 1
    assert "put its rows at DIR/openai/gsm8k/main/train.jsonl" in done.stderr


def test_a_card_says_what_is_measured_what_differs_and_what_is_really_here(
    cbench: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "data/hotpotqa/hotpot_qa/distractor"
    folder.mkdir(parents=True)
    source = FIXTURES / "hotpotqa/hotpot_qa/distractor/validation.jsonl"
    (folder / "train.jsonl").write_bytes(source.read_bytes())
    there = ("--data-dir", tmp_path / "data")
    shown = cbench("datasets", "show", "hotpotqa", *there).stdout
    assert "1 examples of the split train, in place of the usual one" in shown
    assert "Follows:      hotpotqa/hotpot, hotpot_evaluate_v1.py" in shown
    assert "Prompt:       differs. Models are told the task in words of our own." in shown
    assert "Metric:       same." in shown
    assert "Told:         " in shown
    assert "Compressed:   context\n" in shown
    listed = cbench("datasets", *there).stdout
    (line,) = [each for each in listed.splitlines() if each.startswith("hotpotqa ")]
    assert line.endswith("here, only train")
    run = cbench("run", "--builtin", "identity", "--dataset", "hotpotqa", *there).stdout
    assert "hotpotqa is not run as its authors do: data differs (The split train was read" in run
    task = cbench("datasets", "show", "gsm8k", "--data-dir", FIXTURES).stdout
    assert "Compressed:   context (no question beside it)" in task
    config = cbench("datasets", "show", "longbench:lcc", "--data-dir", FIXTURES).stdout
    assert "longbench (task=lcc)" in config
    absent = cbench("datasets", "show", "mmlu:anatomy")
    assert absent.returncode == 0
    assert "Follows:      EleutherAI/lm-evaluation-harness, mmlu_generative" in absent.stdout
    assert "No example can be shown" in absent.stdout
    assert 'has no config "anatomyy"' in cbench("datasets", "show", "mmlu:anatomyy").stderr
