"""The files that start a daemon elsewhere: their checkers accept them, and their settings exist."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cbench_server import __version__
from cbench_server.daemon.settings import load_settings
from tests.e2e.processes import DaemonProcess
from tests.fixtures.certificates import make_certificates
from tests.fixtures.ports import held_port

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "cbench-server.service"
COMPOSE = DEPLOY / "compose" / "compose.yml"
KUBERNETES = DEPLOY / "kubernetes" / "cbench.yml"
TOOLS = ROOT / ".venv-deploy" / "bin"

needs_schemas = pytest.mark.skipif(
    not TOOLS.exists(), reason="needs the schemas: python3 scripts/setup_venv.py deploy"
)


def run(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warn" not in (done.stdout + done.stderr).lower()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_unit() -> None:
    run("systemd-analyze", "verify", "--man=no", UNIT)


@needs_schemas
def test_the_schema_of_compose_files_is_kept() -> None:
    run(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)


@needs_schemas
def test_the_schemas_of_kubernetes_are_kept() -> None:
    run(TOOLS / "kubernetes-validate", "--strict", KUBERNETES)


def manifest(kind: str) -> dict[str, Any]:
    (found,) = (each for each in yaml.safe_load_all(KUBERNETES.read_text()) if each["kind"] == kind)
    return dict(found)


def test_every_setting_is_one_of_the_daemon(tmp_path: Path) -> None:
    config = tmp_path / "cbench-server.toml"
    config.write_text(manifest("ConfigMap")["data"]["cbench-server.toml"])
    settings = load_settings({"config": str(config)})
    assert settings.address == "0.0.0.0:50051"
    known = {f"CBENCH_{name.upper()}" for name in vars(settings)}
    for path in (UNIT, COMPOSE, KUBERNETES):
        named = set(re.findall(r"\bCBENCH_[A-Z_]+", path.read_text()))
        assert named
        assert named <= known, path


def test_what_stops_a_daemon_waits_longer_than_it_drains() -> None:
    drains = load_settings({}).drain_seconds
    (unit,) = re.findall(r"TimeoutStopSec=(\d+)", UNIT.read_text())
    (compose,) = re.findall(r"stop_grace_period: (\d+)s", COMPOSE.read_text())
    pod = manifest("StatefulSet")["spec"]["template"]["spec"]
    told = tomllib.loads(manifest("ConfigMap")["data"]["cbench-server.toml"])["drain_seconds"]
    assert told == drains
    assert min(int(unit), int(compose), pod["terminationGracePeriodSeconds"]) > drains
    assert pod["containers"][0]["image"].endswith(f":{__version__}")


def test_probes_need_no_token(tmp_path: Path) -> None:
    make_certificates(tmp_path, "server")
    port = held_port()
    compose = yaml.safe_load(COMPOSE.read_text())
    _, _, *check = compose["services"]["one"]["healthcheck"]["test"]
    program = check[-1].replace("9464", str(port))
    assert "/readyz" in program
    pod = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    asked = {pod[kind]["httpGet"]["path"] for kind in ("livenessProbe", "readinessProbe")}
    assert asked == {"/livez", "/readyz"}
    tls = ("--tls-cert", str(tmp_path / "server.crt"), "--tls-key", str(tmp_path / "server.key"))
    flags = ("--metrics", f"127.0.0.1:{port}", *tls)
    with DaemonProcess(tmp_path / "home", *flags, env={"CBENCH_TOKEN": "a-long-and-secret-token"}):
        for path in asked:
            run(sys.executable, "-c", program.replace("/readyz", path))
        refused = subprocess.run(
            [sys.executable, "-c", program.replace("/readyz", "/metrics")], capture_output=True
        )
    assert b"401" in refused.stderr
