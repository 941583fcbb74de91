"""Who may reach a daemon, and what a person is told when something is in the way."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused, Tls, Unreachable
from tests.fixtures import preloaded
from tests.fixtures.certificates import make_certificates
from tests.fixtures.ports import held_port

from .following import follow
from .processes import DaemonProcess

SPEC = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa", "max_examples": 3}]}


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's and a client's self-signed certificates."""
    return make_certificates(tmp_path_factory.mktemp("tls"), "server", "client")


@pytest.fixture
def mutual(certificates: Path, tmp_path: Path) -> Iterator[DaemonProcess]:
    tokens = tmp_path / "tokens"
    tokens.write_text("first-token\nsecond-token\n")
    flags = [
        f"--tls-cert={certificates}/server.crt",
        f"--tls-key={certificates}/server.key",
        f"--tls-client-ca={certificates}/client.crt",
        f"--token-file={tokens}",
    ]
    with DaemonProcess(tmp_path / "home", *flags) as daemon:
        yield daemon


def test_mutual_tls_and_a_token_open_the_door(mutual: DaemonProcess, certificates: Path) -> None:
    tls = Tls.from_files(
        certificates / "server.crt", certificates / "client.crt", certificates / "client.key"
    )
    for token in ("first-token", "second-token"):
        with BenchClient(mutual.address, tls=tls, token=token) as client:
            assert len(follow(client.evaluate(SPEC)).rows) == 3
    for token in ("third-token", None):
        with (
            BenchClient(mutual.address, tls=tls, token=token) as client,
            pytest.raises(Refused, match="token") as refused,
        ):
            client.components()
        assert refused.value.reason == "UNAUTHENTICATED"


def test_a_client_without_certificate_or_without_tls_stays_outside(
    mutual: DaemonProcess, certificates: Path
) -> None:
    for tls in (Tls.from_files(certificates / "server.crt"), None):
        with (
            BenchClient(mutual.address, tls=tls, token="first-token") as client,
            pytest.raises(Unreachable, match="127.0.0.1"),
        ):
            client.components()


def _serve(*flags: str) -> "subprocess.CompletedProcess[str]":
    program = "import sys; from cbench_server.daemon import main; sys.exit(main())"
    return preloaded.run(
        [sys.executable, "-c", program, *flags], capture_output=True, text=True, timeout=60
    )


def _said(ended: "subprocess.CompletedProcess[str]") -> str:
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    lines = [line for line in ended.stderr.splitlines() if line.startswith("cbench-server: ")]
    assert len(lines) == 1, ended.stderr
    return lines[0]


def test_an_open_address_needs_tls_and_a_token(tmp_path: Path) -> None:
    said = _said(_serve("--address", "0.0.0.0:0", "--home", str(tmp_path)))
    assert "can be reached from other machines" in said
    assert "--tls-cert" in said
    assert "--unsafe-allow-remote" in said


def test_a_socket_is_its_owners_only(tmp_path: Path) -> None:
    from cbench_server.daemon.embedded import embedded

    before = os.umask(0)
    try:
        with embedded(home=str(tmp_path)) as target:
            assert stat.S_IMODE(os.stat(target.removeprefix("unix:")).st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert address in _said(_serve("--address", address, "--home", str(tmp_path)))


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    # A file where the folder should be: root, who ignores modes, cannot write there either.
    (tmp_path / "file").write_text("")
    home = tmp_path / "file" / "home"
    assert str(home) in _said(_serve("--address", "127.0.0.1:0", "--home", str(home)))


def test_a_corrupt_store_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    store = tmp_path / "cbench.db"
    store.write_bytes(b"this is no database" * 1000)
    assert str(store) in _said(_serve("--address", "127.0.0.1:0", "--home", str(tmp_path)))
    assert store.read_bytes() == b"this is no database" * 1000


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-runs", "none"], '"max_runs"'),
        (["--log-level", "loud"], "'loud'"),
        (["--tls-cert", "x"], "tls_key"),
        (["--config", "/nowhere.toml"], "/nowhere.toml"),
        (["--import", "no_such_module"], "no_such_module"),
        # gRPC would listen at another port.
        (["--address", "127.0.0.1:99999"], '"127.0.0.1:99999" is not an address'),
        (["--address", "nonsense"], '"nonsense" is not an address to listen at'),
        (["--metrics", "127.0.0.1:http"], '"127.0.0.1:http" is not an address'),
    ],
)
def test_a_bad_setting_is_named(tmp_path: Path, flags: list[str], said: str) -> None:
    assert said in _said(_serve("--address", "127.0.0.1:0", "--home", str(tmp_path), *flags))


def test_flags_win_over_variables_and_variables_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cbench_server.daemon.settings import load_settings

    file = tmp_path / "cbench.toml"
    file.write_text('max_runs = 1\nmax_queued = 1\nlog_level = "debug"\n')
    settings = load_settings(
        {"config": str(file), "max_runs": "3"}, {"CBENCH_MAX_RUNS": "2", "CBENCH_MAX_QUEUED": "2"}
    )
    assert (settings.max_runs, settings.max_queued, settings.log_level) == (3, 2, "debug")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease_seconds", "nan"),
        ("lease_seconds", "inf"),
        ("lease_seconds", "2.9"),
        ("max_runs", "9" * 400),
        ("max_runs", 2.5),
        ("ray_workers", "-1"),
        ("engine", "slurm"),
    ],
)
def test_a_setting_that_nobody_means_is_refused_by_name(name: str, value: object) -> None:
    from cbench_server.daemon.settings import BadSetting, load_settings

    with pytest.raises(BadSetting, match=f'setting "{name}"'):
        load_settings({name: value}, {})


def test_health_and_reflection_answer(daemon: DaemonProcess) -> None:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
        ProtoReflectionDescriptorDatabase,
    )

    with grpc.insecure_channel(daemon.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ("", "cbench.v1.Bench", "cbench.v1.Evaluator", "cbench.v1.Gateway"):
            status = stub.Check(health_pb2.HealthCheckRequest(service=service)).status
            assert status == health_pb2.HealthCheckResponse.SERVING
        served = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert {"cbench.v1.Bench", "cbench.v1.Evaluator", "cbench.v1.Gateway"} <= set(served)


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_answers_both_versions_and_resolves_methods(
    daemon: DaemonProcess, version: str
) -> None:
    import grpc
    from google.protobuf import descriptor_pb2
    from grpc_reflection.v1alpha import reflection_pb2 as pb

    service = f"grpc.reflection.{version}.ServerReflection"
    methods = (
        "cbench.v1.Bench.Evaluate",
        "cbench.v1.Gateway.Attach",
        "grpc.health.v1.Health.Check",
        f"{service}.ServerReflectionInfo",
    )
    asked = [pb.ServerReflectionRequest(list_services="*")]
    asked += [pb.ServerReflectionRequest(file_containing_symbol=each) for each in methods]
    asked += [pb.ServerReflectionRequest(file_containing_symbol="cbench.v1.Bench.NoSuch")]
    with grpc.insecure_channel(daemon.address) as channel:
        ask = channel.stream_stream(
            f"/{service}/ServerReflectionInfo",
            request_serializer=pb.ServerReflectionRequest.SerializeToString,
            response_deserializer=pb.ServerReflectionResponse.FromString,
        )
        listed, *found, unknown = list(ask(iter(asked), timeout=30))
    assert service in {each.name for each in listed.list_services_response.service}
    for reply, name in zip(found, methods, strict=True):
        encoded = reply.file_descriptor_response.file_descriptor_proto[0]
        file = descriptor_pb2.FileDescriptorProto.FromString(encoded)
        resolved = {
            f"{file.package}.{each.name}.{method.name}"
            for each in file.service
            for method in each.method
        }
        assert name in resolved
    assert unknown.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_a_system_token_goes_only_where_the_credential_allows(tmp_path: Path) -> None:
    config = tmp_path / "cbench.toml"
    config.write_text('[credentials.mine]\nenv = "MY_KEY"\nprefix = "http://127.0.0.1:1"\n')
    with DaemonProcess(tmp_path / "home", "--config", str(config)) as daemon:
        for name, url, said in [
            ("mine", f"http://127.0.0.1:{held_port()}", "may be sent to"),
            ("mine", "http://127.0.0.1:1.evil.example", "may be sent to"),
            ("mine", "http://127.0.0.1:1", "MY_KEY"),
            ("other", "http://127.0.0.1:1", "no credential"),
        ]:
            spec = {**SPEC, "systems": [{"proxy": {"base_url": url, "credential": name}}]}
            with BenchClient(daemon.address) as client, pytest.raises(Refused, match=said):
                follow(client.evaluate(spec))


def test_a_client_cannot_weaken_the_daemons_sandbox(tmp_path: Path) -> None:
    original = {
        "context": "def add(a, b):\n",
        "test": "def check(c):\n    assert c(1, 2) == 3\n",
        "entry_point": "add",
    }
    processed = {"response": "    return a + b\n"}
    with (
        DaemonProcess(tmp_path / "home", "--sandbox", "best-effort") as daemon,
        BenchClient(daemon.address) as client,
    ):
        with pytest.raises(Refused, match="--sandbox off"):
            client.score("code-execution", original, processed, {"sandbox": "off"})
        scored = client.score("code-execution", original, processed)
    assert scored.scores == {"pass_at_1": 1.0}


def test_a_file_in_the_current_folder_is_not_imported_unless_asked(tmp_path: Path) -> None:
    """A cloned repository or a downloads folder is enough to start a daemon in."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in ("statistics", "rouge_score", "httpx", "sqlalchemy", "grpc", "msgspec"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').write('')\n")
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'mine')!r}, 'w').write('')\n")
    command = [Path(sys.executable).with_name("cbench-server"), "--address", "127.0.0.1:0"]
    # Not forked from a process that has imported all: the imports are what is tested.
    with subprocess.Popen(
        [*command, "--home", str(tmp_path / "home"), "--import", "mine"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip().rpartition("|")[2]
            with BenchClient(address) as client:
                spec = {**SPEC, "evaluators": [{"name": "rouge"}, {"name": "math-equivalence"}]}
                assert follow(client.evaluate(spec)).state == "SUCCEEDED"
        finally:
            process.kill()
    assert (tmp_path / "mine").exists()
    assert not (tmp_path / "ran").exists()


def test_an_operator_says_what_is_dialled(tmp_path: Path) -> None:
    flags = ["--dial-allow", "10.0.0.0/8,127.0.0.1", "--dial-deny", "10.9.0.0/16"]
    with (
        DaemonProcess(tmp_path / "home", *flags) as daemon,
        BenchClient(daemon.address) as client,
    ):
        for target, said in (("192.0.2.1:80", "dial_allow"), ("10.9.1.1:80", "dial_deny")):
            with pytest.raises(Refused, match=said):
                client.start({**SPEC, "systems": [{"target": target}]})
            options = {"base_url": f"http://{target}", "model": "m"}
            with pytest.raises(Refused, match=said):
                client.score("llm-judge", {"answer": "a"}, {"response": "b"}, options)
