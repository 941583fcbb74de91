"""`evaluate()` and a daemon come to the same: anchors, controls, sweeps, direct arms, budgets."""

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_client.messages.convert import fields_from_proto
from cbench_server import evaluate, evaluate_memory
from cbench_server.daemon.embedded import embedded
from cbench_server.errors import CbenchError
from cbench_server.results import EvalResult
from cbench_server.systems.controls import Identity, TruncateHead, TruncateTail
from cbench_server.systems.memories import LastN
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.predictions import Predictions
from tests.e2e.following import Followed, follow
from tests.fixtures.model_server import ModelServer, clean_environment, server
from tests.fixtures.priced_model import PRICE, PricedModel, priced_model

__all__ = ["clean_environment", "server"]

EXAMPLES = [
    {"id": n, "context": f"Box {n} holds {n} red balls. " * 9, "question": "Box?", "answer": str(n)}
    for n in range(12)
]
_TIMES = re.compile(
    ".*latency|handler|ingest|time|seconds|(scoring|queue|reader)_(mean|median|max|p95|stddev)"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchClient]:
    home: Path = tmp_path_factory.mktemp("home")
    with embedded(home=str(home)) as target, BenchClient(target) as connected:
        yield connected


@pytest.fixture
def model() -> Iterator[PricedModel]:
    with priced_model("4 red balls") as served:
        yield served


class Keeping:
    """Keeps the first part of a context."""

    name = "keeping"

    def __init__(self, ratio: float = 0.5) -> None:
        self.ratio = ratio

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        words = example["context"].split()
        return {**example, "context": " ".join(words[: int(len(words) * self.ratio)])}


def stored(client: BenchClient, **spec: Any) -> Followed:
    if "datasets" not in spec:
        digest, _ = client.upload(EXAMPLES)
        spec["datasets"] = [{"name": "", "upload": digest}]
    return follow(client.evaluate(spec))


def local(systems: list[Any], **options: Any) -> EvalResult:
    return evaluate(systems, EXAMPLES, **{"progress": False, "blind": True, **options})


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what does not depend on how quick this machine is."""
    return {
        name: {
            key: pytest.approx(value, rel=1e-12)
            for key, value in values.items()
            if value is not None and not _TIMES.match(key)
        }
        for name, values in summary.items()
    }


def assert_equal(result: EvalResult, ended: Followed) -> None:
    """Compare the figures, the sentences and the arms of both doors."""
    theirs = {each.system: dict(each.metrics) for each in ended.finished.summaries}
    assert sorted(result.summary) == sorted(theirs)
    for system, values in figures(result.summary).items():
        shared = theirs[system].keys() & values.keys()
        assert "mean_score" in shared
        # Resampling takes conversations in the order in which they ended.
        shared -= {"context_compression_stderr", "compression_ratio_stderr"}
        assert {key: theirs[system][key] for key in shared} == {key: values[key] for key in shared}
    said = {(note["code"], note["text"]) for note in result.config["notes"]}
    assert said == {(note.code, note.text) for note in ended.finished.notes} - unlike(ended)
    config = fields_from_proto(ended.finished.config)
    for key in ("roles", "anchors", "controls", "repeats", "direct", "proxies"):
        assert json.dumps(result.config.get(key), sort_keys=True) == json.dumps(
            config.get(key), sort_keys=True
        )


def unlike(ended: Followed) -> set[tuple[str, str]]:
    """Systems of a daemon run at the same time, those of evaluate() do not."""
    codes = ("SHARED_MACHINE",)
    return {(note.code, note.text) for note in ended.finished.notes if note.code in codes}


def test_a_reader_with_anchors_and_controls(client: BenchClient, model: PricedModel) -> None:
    ended = stored(
        client,
        systems=[{"builtin": "truncate-head", "options": {"ratio": 0.5}}, {"builtin": "identity"}],
        reader={"base_url": model.url, "model": "m", "price": PRICE},
        matched_controls=True,
    )
    asked = sorted(json.dumps(each, sort_keys=True) for each in model.requests)
    model.requests.clear()
    reader = OpenAIProxy(model.url, "m", price=(2.5, 10.0, 1.25))
    result = local([TruncateHead(ratio=0.5), Identity()], reader=reader, controls="matched")
    assert_equal(result, ended)
    # Word by word the same questions.
    assert sorted(json.dumps(each, sort_keys=True) for each in model.requests) == asked
    codes = {note["code"] for note in result.config["notes"]}
    assert {"NOISE_FLOOR", "GUESSABLE", "COST"} <= codes
    assert {row.system for row in result.rows if "ANCHOR" in row.marks} == {
        "identity-again@reader",
        "no-context@reader",
    }
    without = local([Identity()], reader=reader, anchors=False)
    assert {row.system for row in without.rows} == {"identity"}


def test_controls_of_a_system_of_ones_own() -> None:
    result = local([Keeping()], controls="matched")
    assert [*result.summary] == [
        "keeping",
        "truncate-tail@keeping",
        "truncate-head@keeping",
        "random-drop@keeping",
    ]
    (note,) = [each for each in result.config["notes"] if each["code"] == "MATCHED_CONTROLS"]
    assert note["system"] == "keeping"
    assert len(result.filter(system="random-drop@keeping").rows) == 5 * 12
    # What is said of arms needs the rows of all of them.
    part = result.filter(system="keeping").config
    assert part["systems"] == ["keeping"]
    assert not any(each["code"] == "MATCHED_CONTROLS" for each in part["notes"])


@pytest.mark.parametrize("controls", [None, "none"])
def test_a_sweep(client: BenchClient, controls: Any) -> None:
    points = [
        {"builtin": "truncate-tail", "swept_option": "ratio", "options": {"ratio": value}}
        for value in (0.2, 0.6)
    ]
    ended = stored(client, systems=points, matched_controls=controls is None)
    result = local([TruncateTail], sweep={"ratio": [0.2, 0.6]}, controls=controls)
    assert_equal(result, ended)
    curve = fields_from_proto(ended.finished.config)["sweep"]["curve"]
    ours = json.loads(json.dumps(result.config["sweep"]["curve"]))
    assert ours["needed"] == curve["needed"]
    assert [each["score"] for each in ours["points"]] == [each["score"] for each in curve["points"]]
    assert sorted(ours["controls"]) == sorted(curve["controls"])
    assert bool(ours["controls"]) == (controls is None)
    (said,) = [each for each in result.config["notes"] if each["code"] == "SWEEP"]
    assert said["text"].startswith("95% of identity's answer_retained")
    assert [*result.summary][:3] == [
        "truncate-tail:ratio=0.2",
        "truncate-tail:ratio=0.6",
        "identity",
    ]


def test_a_memory_is_swept_and_read(client: BenchClient, model: PricedModel) -> None:
    priced = {"base_url": model.url, "model": "m", "price": PRICE}
    points = [
        {"builtin": "last-n", "swept_option": "n", "options": {"n": value}} for value in (2, 6)
    ]
    data = [{"name": "mini-memory", "max_examples": 2}]
    ended = stored(client, systems=points, datasets=data, kind="memory", reader=priced)
    reader = OpenAIProxy(model.url, "m", price=(2.5, 10.0, 1.25))
    result = evaluate_memory(
        [LastN], "mini-memory", max_examples=2, progress=False, reader=reader, sweep={"n": [2, 6]}
    )
    assert_equal(result, ended)
    assert [*result.summary][:3] == ["last-n:n=2", "last-n:n=6", "full-history"]
    curve = result.config["sweep"]["curve"]
    read = {
        each["system"]: each["reader_prompt_tokens"] for each in [*curve["points"], curve["whole"]]
    }
    key = "mean_reader_prompt_tokens"
    assert read == {name: result.summary[name][key] for name in [*result.summary][:3]}


def test_a_proxy_against_its_model(client: BenchClient, server: ModelServer) -> None:
    def step(handler: Any) -> None:
        body = handler.request_body
        words = len(str(body["messages"][-1]["content"]).split())
        tokens = round(words * body.get("keep", 1.0))
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        document = {"choices": [{"message": {"content": "no idea"}}], "usage": usage}
        handler.reply(200, json.dumps(document))

    server.steps.append(step)
    model = {"base_url": server.url, "model": "m"}
    ended = stored(
        client,
        systems=[
            {"name": "p", "proxy": {**model, "options": {"keep": 0.5}}},
            {"proxy": model, "role": "SYSTEM_ROLE_DIRECT"},
        ],
    )
    direct = OpenAIProxy(server.url, "m")
    result = local([OpenAIProxy(server.url, "m", "p", extra_body={"keep": 0.5})], direct=direct)
    assert_equal(result, ended)
    assert result.summary["p"]["reported_compression"] == pytest.approx(0.5, abs=0.02)
    swept = local([OpenAIProxy(server.url, "m", "p")], direct=direct, sweep={"keep": [0.2, 0.6]})
    assert [point["system"] for point in swept.config["sweep"]["curve"]["points"]] == [
        "p:keep=0.2",
        "p:keep=0.6",
    ]
    assert swept.config["sweep"]["whole"] == "direct"


def test_a_budget_stops_after_the_same_example(
    client: BenchClient, model: PricedModel, tmp_path: Path
) -> None:
    priced = {"base_url": model.url, "model": "m", "price": PRICE, "options": {"max_tokens": 9}}
    spec = {
        "systems": [{"builtin": "identity"}, {"proxy": priced, "name": "asked"}],
        "reader": priced,
        "anchors": False,
        "max_concurrency": 1,
    }
    ended = stored(client, **spec, budget_usd=0.0055)
    bill, model.charged = model.bill, []
    asked = OpenAIProxy(
        model.url, "m", "asked", price=(2.5, 10, 1.25), extra_body={"max_tokens": 9}
    )
    settings: dict[str, Any] = {
        "reader": asked,
        "anchors": False,
        "cache_dir": tmp_path,
    }
    with pytest.warns(UserWarning, match=r"stopped: budget.*Call it again with a larger"):
        result = local([Identity(), asked], budget_usd=0.0055, **settings)
    assert 0 < float(model.bill) <= 0.0055
    assert model.bill == bill
    assert result.config["budget"]["spent_usd"] == pytest.approx(float(bill))
    assert result.config["failure"]["reason"] == "BUDGET_SPENT"
    assert_equal(result, ended)
    (said,) = [each for each in result.config["notes"] if each["code"] == "STOPPED_BY_BUDGET"]
    finished = int(said["text"].split("cover ")[1].split()[0])
    assert 0 < finished < 12
    assert {row.ordinal for row in result.rows if row.system == "asked"} == {
        row.ordinal for row in result.rows if row.system == "identity"
    }
    assert result.summary["asked"]["num_scored"] == finished
    count = len(model.charged)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = local([Identity(), asked], budget_usd=1.0, **settings)
    assert len(model.charged) - count == 24 - 2 * finished
    assert whole.summary["asked"]["num_scored"] == 12
    assert "failure" not in whole.config


def test_predictions_are_scored_like_a_live_system_and_can_be_used_again(
    client: BenchClient,
) -> None:
    outputs = [{"id": n, "response": str(n % 7)} for n in range(12)]
    upload, _ = client.upload(outputs)
    ended = stored(client, systems=[{"predictions": upload, "name": "theirs"}])
    system = Predictions("theirs", outputs)
    first, again = (local([system]) for _ in range(2))
    assert_equal(first, ended)
    assert [row.scores for row in again.rows] == [row.scores for row in first.rows]
    assert not first.summary["theirs"].get("num_asked_twice")


@pytest.mark.parametrize(
    ("systems", "options", "words"),
    [
        ([Identity()], {"anchors": True}, "this run has none. Name one"),
        ([Identity()], {"controls": "some"}, 'must be "matched" or "none", not \'some\''),
        ([Identity()], {"budget_usd": 1.0}, r"price=\(IN, OUT\)"),
        ([Identity()], {"budget_usd": -1.0}, "more than 0, not -1"),
        ([Identity()], {"budget_usd": "2"}, "must be US dollars, not '2'"),
        ([Identity()], {"reader": "http://x"}, r"give the model as OpenAIProxy\(URL, MODEL\)"),
        ([Identity()], {"direct": OpenAIProxy("http://127.0.0.1:9")}, "no proxy to set against"),
        ([Identity()], {"sweep": {"ratio": [0.1, 0.2]}}, "Give a class or a function that takes"),
        ([TruncateTail], {"sweep": {"raito": [0.1, 0.2]}}, "cannot be made with raito=0.1"),
        ([TruncateTail], {"sweep": {"ratio": [0.1]}}, "ratio=0.1 is one"),
        ([TruncateTail], {"sweep": {"ratio": [0.1, 0.1]}}, "ratio=0.1 twice; leave one out"),
        ([TruncateTail], {"sweep": {"ratio": [0.1, "half"]}}, "half"),
        ([TruncateTail], {"sweep": "ratio=1"}, "give one option and its numbers"),
        ([TruncateTail], {"sweep": {"ratio": []}}, "over \\[\\]; give a list of numbers"),
        ([TruncateTail, TruncateHead], {"sweep": {"ratio": [0.1, 0.2]}}, "several systems"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    systems: list[Any], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(CbenchError, match=words):
        local(systems, **options)
