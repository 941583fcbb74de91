"""`cbench run --direct URL`: what a proxy saves, by the prompt tokens that endpoints report."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from tests.cli.conftest import Cbench, complaint, strict
from tests.fixtures.model_server import ModelServer, clean_environment, server, serving

__all__ = ["ModelServer", "clean_environment", "server"]

FLAGS = ("--model", "m", "--dataset", "mini-qa", "-n", "12")


@pytest.fixture
def proxy() -> Iterator[ModelServer]:
    with serving() as model_server:
        model_server.report(0.4, "Paris")
        yield model_server


def finished(cbench: Cbench, *flags: object) -> str:
    done = cbench("run", "--quiet", *flags, *FLAGS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_proxys_saving_is_measured_against_the_model_without_it(
    cbench: Cbench, proxy: ModelServer, server: ModelServer
) -> None:
    server.report(1.0, "Paris")
    flags = ("--proxy", proxy.url, "--name", "saver", "--direct", server.url)
    run = strict(finished(cbench, *flags, "--output", "json"))
    assert min(len(proxy.requests), len(server.requests)) >= 12
    values = run["summary"]["saver"]
    own, direct = (
        sum(row["usage"]["prompt_tokens"] for row in run["rows"] if row["system"] == name)
        for name in ("saver", "direct")
    )
    assert values["reported_compression"] == pytest.approx(1 - own / direct)
    low, high = values["reported_compression_ci_low"], values["reported_compression_ci_high"]
    assert 0.55 < low <= values["reported_compression"] <= high < 0.65
    assert values["mean_direct_prompt_tokens"] == pytest.approx(direct / 12)
    assert values["num_reported_pairs"] == 12
    assert values["context_compression"] is None
    assert "reported_compression" not in run["summary"]["direct"]
    assert run["roles"] == {"direct": "direct"}
    assert "pareto_rank" not in run["summary"]["direct"]

    table = cbench("show", "last").stdout
    (line,) = [line for line in table.splitlines() if line.startswith("saver ")]
    saved = f"-{values['reported_compression'] * 100:.1f}% reported"
    assert f"  {saved}  {direct / 12:,.0f} → {own / 12:,.0f} reported  " in line
    assert "Arms that are never ranked\nArm " in table
    gate = cbench("gate", "last", "--policy", "context compression at least 50%")
    assert gate.returncode == 0, gate.stderr
    assert "context compression, as reported, 59." in gate.stdout
    refused = cbench("gate", "last", "--system", "direct", "--policy", "f1 at least 0")
    assert complaint(refused).startswith('"direct" is a direct arm of run')
    assert "one system" in complaint(cbench("compare", "last"))


def test_without_it_a_proxys_saving_is_unknown_everywhere(
    cbench: Cbench, proxy: ModelServer
) -> None:
    table = finished(cbench, "--proxy", proxy.url, "--name", "saver")
    (line,) = [line for line in table.splitlines() if line.startswith("saver ")]
    assert " unknown " in line
    assert "saver: what it saves is unknown. A proxy returns no context: add --direct" in table
    run = strict(cbench("export", "last", "--format", "json").stdout)
    assert run["summary"]["saver"]["context_compression"] is None
    (note,) = [note for note in run["notes"] if note["code"] == "COMPRESSION_UNKNOWN"]
    assert note["system"] == "saver"
    assert all("context_tokens_out" not in row for row in run["rows"])
    rows = csv.DictReader(io.StringIO(cbench("export", "last", "--format", "csv").stdout))
    assert {row["context_tokens_out"] for row in rows} == {""}
    markdown = cbench("export", "last", "--format", "markdown").stdout
    assert "| unknown |" in markdown
    gate = cbench("gate", "last", "--policy", "context compression at least 10%")
    assert gate.returncode == 2
    assert "no row tells what the system left of the context" in gate.stderr
    assert "--direct URL" in gate.stderr


def test_an_unknown_saving_is_on_no_front(cbench: Cbench, proxy: ModelServer) -> None:
    proxy.steps[:] = []
    proxy.say("Paris")
    finished(
        cbench,
        *("--proxy", proxy.url, "--name", "saver", "--reader", proxy.url, "--no-anchors"),
        *("--builtin", "identity", "--builtin", "truncate-tail"),
    )
    shown = cbench("compare", "last").stdout
    assert "What saver left of the context is unknown, so the front of tokens lacks it." in shown


@pytest.mark.parametrize(
    ("systems", "words"),
    [
        ([{"builtin": "identity", "role": "SYSTEM_ROLE_DIRECT"}], '"identity" is none'),
        ([{"proxy": {"base_url": "URL"}, "role": "SYSTEM_ROLE_DIRECT"}], "has no proxy to set"),
        (
            [
                {"proxy": {"base_url": "URL", "model": "a"}},
                {"proxy": {"base_url": "URL", "model": "b"}, "role": "SYSTEM_ROLE_DIRECT"},
            ],
            'asks for the model "b", and no proxy does: they ask for "a"',
        ),
        (
            [
                {"proxy": {"base_url": "URL", "model": "a"}},
                {"proxy": {"base_url": "URL", "model": "a"}, "role": "SYSTEM_ROLE_DIRECT"},
                {"proxy": {"base_url": "URL", "model": "a"}, "role": "SYSTEM_ROLE_DIRECT"},
            ],
            'two direct arms for the model "a"',
        ),
    ],
)
def test_a_direct_arm_without_its_proxy_is_refused(
    daemon_address: str, proxy: ModelServer, systems: list[dict[str, Any]], words: str
) -> None:
    given = json.loads(json.dumps(systems).replace("URL", proxy.url))
    with BenchClient(daemon_address) as client, pytest.raises(Refused, match=words):
        client.start({"systems": given, "datasets": [{"name": "mini-qa"}]})
    assert not proxy.requests


def test_direct_arms_without_reports_leave_it_unknown(
    cbench: Cbench, proxy: ModelServer, server: ModelServer
) -> None:
    server.say("Paris")
    table = finished(cbench, "--proxy", proxy.url, "--name", "saver", "--direct", server.url)
    assert "saver: what it saves is unknown. It or the direct arm reported no prompt" in table
