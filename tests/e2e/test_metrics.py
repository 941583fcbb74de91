"""Metrics as Prometheus reads them, at a daemon of its own."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cbench_client import BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, start_system, wait_until
from tests.fixtures.ports import held_port

SPEC = {
    "systems": [{"builtin": "identity"}, {"builtin": "truncate-head"}],
    "datasets": [{"name": "mini-qa", "max_examples": 10}],
    "anchors": False,
}


def fetch(url: str, token: str = "") -> str:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as reply:
        return str(reply.read().decode())


def samples(text: str) -> dict[str, float]:
    """Return the values, by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_what_a_daemon_does_can_be_read(tmp_path: Path) -> None:
    port = held_port()
    url = f"http://127.0.0.1:{port}"
    with (
        DaemonProcess(tmp_path / "home", "--metrics", f"127.0.0.1:{port}") as daemon,
        BenchClient(daemon.address) as client,
        start_system("invalid-utf8") as failing,
    ):
        assert fetch(f"{url}/livez") == "alive\n"
        assert fetch(f"{url}/readyz") == "ready\n"
        run_id = follow(client.evaluate(SPEC)).finished.run_id
        systems = [{"target": failing.address, "name": "a-name"}]
        follow(client.evaluate({**SPEC, "systems": systems}))
        text = fetch(f"{url}/metrics")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(f"{url}/rows")
        wait_until(lambda: samples(fetch(f"{url}/metrics"))["cbench_watchers{}"] == 0)
    found = samples(text)
    assert found["cbench_rows_total{}"] == 30
    assert found["cbench_runs_finished_total{state=SUCCEEDED}"] == 2
    assert found["cbench_call_seconds_count{}"] == 20
    assert sum(value for name, value in found.items() if "row_failures_total" in name) == 10
    assert found["cbench_store_commit_seconds_count{}"] > 0
    assert found["cbench_event_loop_lag_seconds_count{}"] > 0
    assert found["cbench_store_wal_bytes{}"] > 0
    assert found["process_resident_memory_bytes{}"] > 0
    assert run_id not in text
    assert "a-name" not in text
    assert "truncate-head" not in text


def test_strangers_read_nothing(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("a-long-and-secret-token\n")
    tokens.chmod(0o600)
    port = held_port()
    url = f"http://127.0.0.1:{port}/metrics"
    flags = ("--metrics", f"127.0.0.1:{port}", "--token-file", str(tokens))
    with DaemonProcess(tmp_path / "home", *flags):
        for token in ("", "another"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                fetch(url, token)
        assert "cbench_rows_total" in fetch(url, "a-long-and-secret-token")


def test_metrics_are_not_offered_to_the_network_without_tls_and_token(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"can be reached from other machines"):
        DaemonProcess(tmp_path / "home", "--metrics", "0.0.0.0:0")
