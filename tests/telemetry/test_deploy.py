"""The files in deploy/: rules that promtool passes, and no metric that a daemon does not expose."""

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cbench_client import BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess
from tests.fixtures.ports import held_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PAGE = DEPLOY.parent / "docs" / "observability.md"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
TESTS = DEPLOY / "prometheus" / "alerts_test.yml"
DASHBOARD = DEPLOY / "grafana" / "dashboard.json"
# Prometheus itself makes these.
MADE_BY_PROMETHEUS = {"up"}
ADDED_BY_SCRAPING = {"instance", "job"}
NAME = re.compile(r"\b(?:cbench|process|python)_[a-z0-9_]+\b")
LABELS = re.compile(r"([a-z_]+)\{([^}]*)\}|by \(([^)]*)\)")

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)"
)


@needs_promtool
def test_promtool_passes_the_rules_and_the_way_prometheus_is_set_up() -> None:
    for command in (
        ["check", "rules", str(ALERTS)],
        ["check", "config", str(DEPLOY / "prometheus" / "prometheus.yml")],
    ):
        done = subprocess.run(
            ["promtool", *command], capture_output=True, text=True, timeout=60, cwd=ALERTS.parent
        )
        assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_rules_fire_when_they_should_and_only_then() -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", TESTS.name],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=TESTS.parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_has_a_test() -> None:
    named = set(re.findall(r"- alert: (\w+)", ALERTS.read_text()))
    assert named
    assert named == set(re.findall(r"alertname: (\w+)", TESTS.read_text()))


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of every sample that a daemon exposes once it has done a run."""
    port = held_port()
    home = tmp_path_factory.mktemp("home")
    with (
        DaemonProcess(home, "--metrics", f"127.0.0.1:{port}") as daemon,
        BenchClient(daemon.address) as client,
    ):
        spec = {
            "systems": [{"builtin": "identity"}],
            "datasets": [{"name": "mini-qa", "max_examples": 3}],
        }
        follow(client.evaluate(spec))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as reply:
            text = reply.read().decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        labels = found.setdefault(family.name, set())
        # A counter that has not counted yet says what it is, and has no sample.
        if family.type == "counter":
            found.setdefault(f"{family.name}_total", set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
            labels.update(sample.labels)
    return found


def expressions() -> list[str]:
    """All that the files ask Prometheus for."""
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    asked += [each["query"] for each in dashboard["templating"]["list"]]
    asked += re.findall(r"expr: (.*)", ALERTS.read_text())
    asked += re.findall(r"series: '([^']*)'", TESTS.read_text())
    return asked


def test_every_metric_that_is_named_is_exposed(exposed: dict[str, set[str]]) -> None:
    asked = expressions()
    named = {name for expression in asked for name in NAME.findall(expression)}
    assert len(named) > 20
    assert named - MADE_BY_PROMETHEUS <= set(exposed)


def test_every_meter_of_a_daemon_is_on_the_dashboard(exposed: dict[str, set[str]]) -> None:
    shown = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for expression in expressions()
        for name in NAME.findall(expression)
    }
    meters = {
        re.sub(r"_(bucket|count|sum|created|total)$", "", name)
        for name in exposed
        if name.startswith("cbench_")
    }
    assert meters <= {name.removesuffix("_total") for name in shown}


def test_every_meter_of_a_daemon_is_on_the_page(exposed: dict[str, set[str]]) -> None:
    named = set(re.findall(r"`(cbench_\w+)`", PAGE.read_text()))
    assert named <= {name.removesuffix("_bucket") for name in exposed}
    ends = ("", "_bucket", "_count", "_sum", "_created", "_total")
    explained = {name.removesuffix("_total") + end for name in named for end in ends}
    assert {name for name in exposed if name.startswith("cbench_")} <= explained


def test_every_label_that_is_named_is_exposed(exposed: dict[str, set[str]]) -> None:
    known = set.union(*exposed.values()) | ADDED_BY_SCRAPING | {"le", "origin", "reason"}
    for expression in expressions():
        for metric, matched, grouped in LABELS.findall(expression):
            if grouped:
                assert {each.strip() for each in grouped.split(",")} <= known, expression
            for label in re.findall(r"(\w+)\s*(?:=~|=|!=)", matched):
                own = exposed.get(metric, set()) | ADDED_BY_SCRAPING
                assert label in own, (metric, label, expression)
