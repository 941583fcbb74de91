"""Roles: every RPC has some, and grants are read and written as they are meant."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cbench_client._gen.cbench.v1 import bench_pb2, evaluator_pb2, gateway_pb2
from cbench_server.errors import RunFailed, Unauthenticated
from cbench_server.rpc.attached import AttachedEvaluator
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.grants import (
    BadGrant,
    Grant,
    check,
    digest_of,
    find,
    format_line,
    parse_line,
    parse_lines,
    plain_grant,
)
from cbench_server.rpc.keyring import Keyring
from cbench_server.rpc.roles import METHODS, ROLES, is_open_to

SERVED = (
    bench_pb2.DESCRIPTOR.services_by_name["Bench"],
    evaluator_pb2.DESCRIPTOR.services_by_name["Evaluator"],
    gateway_pb2.DESCRIPTOR.services_by_name["Gateway"],
    health_pb2.DESCRIPTOR.services_by_name["Health"],
    reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
)


def test_every_rpc_has_a_role_in_the_table() -> None:
    served = {
        f"/{service.full_name}/{method.name}" for service in SERVED for method in service.methods
    }
    # Reflection is asked for by two names; their messages are the same.
    again = {method.replace("v1alpha", "v1") for method in served if "v1alpha" in method}
    assert set(METHODS) == served | again


def test_an_rpc_that_is_not_in_the_table_is_for_admins() -> None:
    opened = [role for role in ROLES if is_open_to("/cbench.v1.Bench/New", frozenset({role}))]
    assert opened == ["admin"]


@pytest.mark.parametrize(
    "grant",
    [
        Grant("ci", frozenset({"run"}), digest_of("t"), expires=1_800_000_000.0),
        Grant("lab", frozenset({"attach", "read"}), digest_of("t"), frozenset({"a", "b, c%"})),
        Grant("alice@home", frozenset({"admin"}), "cert:Alice Example"),
    ],
)
def test_a_grant_is_read_as_it_was_written(grant: Grant) -> None:
    assert parse_line(format_line(check(grant))) == grant


def test_a_line_of_one_word_is_the_token_of_an_admin() -> None:
    grants, wrong = parse_lines(["", "# comment", "#", "secret", "  other  "])
    assert (grants, wrong) == ([plain_grant("secret"), plain_grant("other")], [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ci run", "two words"),
        ("ci ruin sha256:" + "0" * 64, 'no role "ruin"'),
        ("ci run secret", "neither sha256"),
        ("ci run sha256:12", "neither sha256"),
        ("ci run cert:", "neither sha256"),
        ("c/i run cert:x", "cannot name a token"),
        ("ci attach cert:x", "no names"),
        ("ci run cert:x names=a", "lacks the role attach"),
        ("ci run cert:x expires=soon", '"soon" is not a valid time'),
        ("ci run cert:x role=admin", 'an option "role"'),
    ],
)
def test_a_bad_line_is_named_and_harms_no_other(line: str, said: str) -> None:
    with pytest.raises(BadGrant, match=said):
        parse_line(line)
    grants, wrong = parse_lines(["secret", line])
    assert grants == [plain_grant("secret")]
    assert wrong[0].startswith("line 2: ")


def test_a_wrong_token_is_not_made_good_by_a_certificate() -> None:
    grants = [Grant("lab", frozenset({"read"}), "cert:lab"), plain_grant("secret")]
    assert find(grants, None, ["lab"], 0.0) == grants[0]
    assert find(grants, "wrong", ["lab"], 0.0) is None
    assert find(grants, "cert:lab", [], 0.0) is None
    assert find(grants, None, ["", "other"], 0.0) is None


def test_a_grant_that_is_over_opens_nothing() -> None:
    grant = Grant("ci", frozenset({"run"}), digest_of("t"), expires=100.0)
    assert find([grant], "t", [], 99.9) == grant
    assert find([grant], "t", [], 100.0) is None


async def test_an_open_call_ends_when_its_grant_is_over(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    grant = Grant("ci", frozenset({"run"}), digest_of("t"), expires=time.time() + 0.1)
    file.write_text(format_line(replace(grant, expires=None)))
    keyring = Keyring(path=str(file))
    watching = asyncio.create_task(keyring.keep_watch())
    with pytest.raises(Unauthenticated, match="over"), keyring.living(grant):
        await asyncio.wait_for(asyncio.Event().wait(), 20)
    watching.cancel()


def test_a_token_file_is_refused_at_the_start_if_a_line_is_bad(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("ci run cert:lab\n")
    with pytest.raises(BadGrant, match="tls_client_ca"):
        Keyring(path=str(file))
    file.write_text("token\nci run\n")
    with pytest.raises(BadGrant, match="line 2"):
        Keyring(path=str(file))


def test_an_empty_token_file_lets_nobody_in_and_a_lost_one_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("")
    keyring = Keyring(path=str(file))
    assert keyring.is_locked
    assert keyring.find((), None) is None
    file.write_text("token\n")
    bearer = (("authorization", "Bearer token"),)
    assert keyring.find(bearer, None) == plain_grant("token")
    file.unlink()
    assert keyring.find(bearer, None) == plain_grant("token")
    file.write_text("other\n")
    assert keyring.find(bearer, None) is None


async def test_an_evaluator_that_returns_with_another_version_ends_the_run() -> None:
    attachments = Attachments()
    first, second = (evaluator_pb2.EvaluatorInfo(name="mine", version=each) for each in "12")
    attached = await attachments.add(gateway_pb2.Hello(evaluators=[first]))
    evaluator = AttachedEvaluator(attachments, first, {})
    await attachments.remove(attached)
    await attachments.add(gateway_pb2.Hello(evaluators=[second]))
    with pytest.raises(RunFailed, match='version "2"') as ended:
        await evaluator.assess({}, {})
    assert ended.value.reason == "SYSTEM_CHANGED"
