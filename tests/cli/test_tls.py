"""TLS and tokens, to the daemon and to systems, and what is said when they do not match."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused
from cbench_server.daemon.embedded import embedded
from tests.cli.conftest import CBENCH, Cbench, complaint, strict
from tests.fixtures.certificates import make_certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificates and keys of a server and of somebody else."""
    return make_certificates(tmp_path_factory.mktemp("tls"), "server", "other")


@pytest.fixture
def secured(start: Callable[..., str], certificates: Path) -> str:
    """A daemon that wants TLS, a certificate and a token."""
    return start(
        CBENCH.with_name("cbench-server"),
        "--address",
        "127.0.0.1:0",
        "--log-level",
        "error",
        "--tls-cert",
        certificates / "server.crt",
        "--tls-key",
        certificates / "server.key",
        "--tls-client-ca",
        certificates / "other.crt",
        CBENCH_TOKEN="open-sesame",
    )


def test_a_secured_daemon_opens_to_the_right_flags_only(
    cbench: Cbench, secured: str, certificates: Path
) -> None:
    asked = ("runs", "--output", "json", "--server", secured)
    ca, other = certificates / "server.crt", certificates / "other.crt"
    own = ("--tls-cert", other, "--tls-key", certificates / "other.key")

    opened = cbench(*asked, "--tls-ca", ca, *own, CBENCH_TOKEN="open-sesame")
    assert opened.returncode == 0, opened.stderr
    assert strict(opened.stdout) == []

    plain = cbench(*asked)
    assert "speaks TLS and this connection does not. Pass --tls, or --tls-ca" in complaint(plain)
    stranger = cbench(*asked, "--tls-ca", other, *own)
    assert "Pass its authority with --tls-ca FILE." in complaint(stranger)
    wrong = cbench(*asked, "--tls-ca", ca, *own, "--token", "guess")
    assert "refused the token" in complaint(wrong)
    silent = cbench(*asked, "--tls-ca", ca, *own)
    assert "Pass --token, or set CBENCH_TOKEN." in complaint(silent)
    unproven = cbench(*asked, "--tls-ca", ca)
    assert "pass --tls-cert FILE and --tls-key FILE." in complaint(unproven)
    half = cbench(*asked, "--tls-cert", other)
    assert complaint(half) == "--tls-cert and --tls-key belong together; pass both."
    assert {each.returncode for each in (plain, stranger, wrong, silent, unproven)} == {1}


_DRIVE = """
import sys
from cbench_client import BenchClient, Unreachable
try:
    list(BenchClient(sys.argv[1], tls=True).list())
except Unreachable as error:
    sys.exit(str(error))
"""


def test_a_handshake_that_fails_is_said_in_one_line_and_not_by_grpc(secured: str) -> None:
    # Processes of their own: gRPC reads how much to print when it is loaded.
    for command in ([CBENCH, "runs", "--tls", "--server", secured], ["-c", _DRIVE, secured]):
        failed = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=120,
            env={name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"},
        )
        assert (failed.returncode, failed.stdout) == (1, "")
        assert "is not accepted: self-signed certificate." in failed.stderr
        assert len(failed.stderr.splitlines()) == 1, failed.stderr


def test_a_system_behind_tls_is_reached_with_its_authority(
    cbench: Cbench, start: Callable[..., str], certificates: Path, tmp_path: Path
) -> None:
    ca = certificates / "server.crt"
    program = (
        "from cbench_client import serve; from tests.cli.programs.system import Answering; "
        f"serve(Answering(), tls=({str(ca)!r}, {str(certificates / 'server.key')!r}))"
    )
    target = start(sys.executable, "-c", program)
    command = ("run", "--system", target, "--dataset", "mini-qa", "-n", "1")
    plain = cbench(*command)
    assert plain.returncode == 1
    assert "Pass --system-tls, or --system-ca FILE" in complaint(plain)
    assert "`tls`" not in complaint(plain)
    spec = {"systems": [{"target": target}], "datasets": [{"name": "mini-qa", "max_examples": 1}]}
    with embedded(home=tmp_path) as daemon, BenchClient(daemon) as client:
        with pytest.raises(Refused, match="does not. Set its `tls`, with `tls.ca_pem`") as refused:
            client.start(spec)
        assert refused.value.metadata == {"advice": "USE_TLS"}
    asked = cbench("systems", "--system", target)
    assert "Pass --system-tls, or --system-ca FILE" in complaint(asked)
    reached = cbench(*command, "--system-ca", ca)
    assert reached.returncode == 0, reached.stderr
    assert "answering" in cbench("systems", "--system", target, "--system-ca", ca).stdout
