"""Certificates: renewed without a restart, and in the place of a token."""

import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused, Tls, Unreachable
from cbench_server.rpc.grants import digest_of
from tests.fixtures.certificates import make_certificates
from tests.fixtures.ports import held_port

from .following import follow
from .processes import DaemonProcess, wait_until

SPEC = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa", "max_examples": 1}]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("tls"), "first", "second", "client")


@pytest.fixture
def daemon(made: Path, tmp_path: Path) -> Iterator[DaemonProcess]:
    _install(made, "first", tmp_path)
    (tmp_path / "tokens").write_text(f"someone read cert:stranger\nci run {digest_of('secret')}\n")
    flags = [
        f"--tls-cert={tmp_path}/server.crt",
        f"--tls-key={tmp_path}/server.key",
        f"--tls-client-ca={made}/client.crt",
        f"--token-file={tmp_path}/tokens",
    ]
    with DaemonProcess(tmp_path / "home", *flags) as process:
        yield process


def _install(made: Path, name: str, folder: Path) -> None:
    for suffix in ("crt", "key"):
        (folder / f"server.{suffix}").write_bytes((made / f"{name}.{suffix}").read_bytes())


def _client(daemon: DaemonProcess, made: Path, trusted: str, token: str | None) -> BenchClient:
    tls = Tls.from_files(made / f"{trusted}.crt", made / "client.crt", made / "client.key")
    return BenchClient(daemon.address, tls=tls, token=token)


def test_a_renewed_certificate_serves_new_connections_and_a_broken_one_none(
    daemon: DaemonProcess, made: Path, tmp_path: Path
) -> None:
    with _client(daemon, made, "first", "secret") as before:
        before.components()
        # Half of a change: the old pair stays in use.
        (tmp_path / "server.crt").write_bytes((made / "second.crt").read_bytes())
        with _client(daemon, made, "first", "secret") as client:
            client.components()
        _install(made, "second", tmp_path)
        with _client(daemon, made, "second", "secret") as client:
            client.components()
        with (
            _client(daemon, made, "first", "secret") as client,
            pytest.raises(Unreachable, match="certificate"),
        ):
            client.components()
        # Connections that stand are not cut off.
        before.components()
    wait_until(lambda: any("left as they were" in line for line in daemon.errors))


def test_the_page_of_metrics_has_the_renewed_certificate_too(made: Path, tmp_path: Path) -> None:
    _install(made, "first", tmp_path)
    port = held_port()
    flags = [
        f"--tls-cert={tmp_path}/server.crt",
        f"--tls-key={tmp_path}/server.key",
        f"--tls-client-ca={made}/client.crt",
        f"--metrics=127.0.0.1:{port}",
    ]

    def fetch(trusted: str, *, shows_own: bool = True) -> bytes:
        context = ssl.create_default_context(cafile=made / f"{trusted}.crt")
        if shows_own:
            context.load_cert_chain(made / "client.crt", made / "client.key")
        context.check_hostname = False
        url = f"https://127.0.0.1:{port}/metrics"
        with urllib.request.urlopen(url, context=context, timeout=30) as answer:
            return bytes(answer.read())

    with DaemonProcess(tmp_path / "home", *flags) as daemon:
        assert b"cbench_rows_total" in fetch("first")
        (tmp_path / "server.crt").write_bytes((made / "second.crt").read_bytes())
        assert b"cbench_rows_total" in fetch("first")
        fetch("first")
        _install(made, "second", tmp_path)
        assert b"cbench_rows_total" in fetch("second")
        with pytest.raises(OSError, match="certificate verify failed"):
            fetch("first")
        # Clients are still asked for theirs.
        with pytest.raises(OSError):
            fetch("second", shows_own=False)
        daemon.terminate()
    complaints = [line for line in daemon.errors if "left as they were" in line]
    assert len(complaints) == 1


def test_the_name_in_a_certificate_can_stand_for_a_token(
    daemon: DaemonProcess, made: Path, tmp_path: Path
) -> None:
    with _client(daemon, made, "first", None) as client:
        with pytest.raises(Refused) as refused:
            client.components()
        assert refused.value.reason == "UNAUTHENTICATED"
        (tmp_path / "tokens").write_text("lab run cert:localhost\n")
        assert follow(client.evaluate(SPEC)).finished.created_by == "lab"
        with pytest.raises(Refused) as refused:
            _client(daemon, made, "first", "wrong").components()
        assert refused.value.reason == "UNAUTHENTICATED"
