"""Roles of tokens: what each opens, on a real daemon whose tokens come and go."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2, bench_pb2_grpc, evaluator_pb2, gateway_pb2
from cbench_client.host.attachment import Attachment
from cbench_server.rpc.grants import digest_of
from cbench_server.rpc.roles import METHODS
from tests.fixtures import preloaded

from .following import follow
from .processes import DaemonProcess, examples, start_system, wait_until

SPEC = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa", "max_examples": 3}]}
BENCH, EVALUATOR, GATEWAY = "/cbench.v1.Bench/", "/cbench.v1.Evaluator/", "/cbench.v1.Gateway/"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

LISTS = {BENCH + "ListComponents", EVALUATOR + "Describe"}
READS = {
    BENCH + name
    for name in [
        "GetRun",
        "ListRuns",
        "ListRows",
        "WatchRun",
        "Compare",
        "Gate",
        "Report",
        "Export",
    ]
}
SCORES = {EVALUATOR + "Score", EVALUATOR + "ScoreStream"}
CHANGES = {
    BENCH + name
    for name in (
        [
            "Evaluate",
            "CancelRun",
            "ResumeRun",
            "ExplainWait",
            "DeleteRun",
            "PinRun",
            "Rescore",
            "UploadExamples",
            "Import",
        ]
    )
}
ATTACHES = {GATEWAY + "Attach"}
PRUNES = {BENCH + "PruneRuns"}
EVERYTHING = LISTS | READS | SCORES | CHANGES | PRUNES | ATTACHES
OPENED = {
    "read": LISTS | READS,
    "score": LISTS | SCORES,
    "run": LISTS | READS | SCORES | CHANGES,
    "attach": ATTACHES,
    "admin": EVERYTHING,
}


class Tokens:
    """The token file of a daemon, and the tokens in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def tell(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "cbench_server", "tokens", *arguments]
        ended = preloaded.run(
            [*command, "--token-file", str(self.path)], capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 0, ended.stderr
        return str(ended.stdout).strip()


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    lines = [f"{role} {role} {digest_of(role)}" for role in ("read", "score", "run", "admin")]
    lines.append(f"other run {digest_of('other')}")
    lines.append(f"attach attach {digest_of('attach')} names=mine,memory")
    path.write_text("\n".join(["old-token", *lines, ""]))
    path.chmod(0o600)
    return Tokens(path)


@pytest.fixture(scope="module")
def daemon(tokens: Tokens, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    home = tmp_path_factory.mktemp("roles")
    with DaemonProcess(home, f"--token-file={tokens.path}", "--log-level=error") as process:
        yield process


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[Callable[[str], BenchClient]]:
    opened: list[BenchClient] = []

    def of(token: str) -> BenchClient:
        opened.append(BenchClient(daemon.address, token=token))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


def audited(daemon: DaemonProcess, **what: Any) -> dict[str, Any]:
    """Wait for the audit line that says so."""

    def found() -> dict[str, Any] | None:
        for line in list(daemon.errors):
            entry = json.loads(line) if line.startswith("{") else {}
            is_audit = entry.get("logger") == "cbench_server.audit"
            if is_audit and all(entry.get(key) == value for key, value in what.items()):
                return entry
        return None

    entry: dict[str, Any] = wait_until(found)
    return entry


def _code(channel: Any, method: str, token: str) -> str:
    call = channel.stream_stream(method)
    try:
        for _ in call(iter([b""]), metadata=[("authorization", f"Bearer {token}")], timeout=20):
            break
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


@pytest.mark.parametrize("role", OPENED)
def test_a_role_opens_its_rpcs_and_no_other(daemon: DaemonProcess, role: str) -> None:
    with grpc.insecure_channel(daemon.address) as channel:
        codes = {method: _code(channel, method, role) for method in sorted(EVERYTHING)}
        assert _code(channel, REFLECTION, role) == "OK"
    assert {method for method, code in codes.items() if code != "PERMISSION_DENIED"} == OPENED[role]
    assert "UNAUTHENTICATED" not in codes.values()


def _served() -> dict[str, MethodDescriptor]:
    """Every RPC of ours that a daemon serves, as the contract describes it."""
    return {
        f"/{service.full_name}/{method.name}": method
        for file in (bench_pb2, evaluator_pb2, gateway_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def test_every_rpc_of_the_contract_has_its_roles() -> None:
    assert set(_served()) == EVERYTHING
    assert set(METHODS) >= EVERYTHING


def test_old_tokens_are_admins(client: Callable[[str], BenchClient]) -> None:
    seen = follow(client("old-token").evaluate(SPEC))
    assert seen.finished.created_by == "admin"
    client("old-token").delete(seen.finished.run_id)


def test_a_refusal_by_role_is_typed_and_says_what_to_do(
    client: Callable[[str], BenchClient],
) -> None:
    with pytest.raises(Refused, match="cbench tokens create NAME --role run") as refused:
        client("read").start(SPEC)
    assert (refused.value.code, refused.value.reason) == ("PERMISSION_DENIED",) * 2


def test_a_run_belongs_to_the_token_that_started_it(
    daemon: DaemonProcess, client: Callable[[str], BenchClient]
) -> None:
    before = {run.run_id for run in client("run").list(mine=True)}
    mine = follow(client("run").evaluate(SPEC)).finished
    theirs = client("other").start(SPEC)
    assert mine.created_by == "run"
    assert {run.run_id for run in client("run").list(mine=True)} == before | {mine.run_id}
    assert {mine.run_id, theirs} <= {run.run_id for run in client("run").list()}
    for change in ("cancel", "resume", "delete"):
        with pytest.raises(Refused, match=f'started by "run".*can {change}') as refused:
            getattr(client("other"), change)(mine.run_id)
        assert refused.value.reason == "PERMISSION_DENIED"
    client("run").delete(mine.run_id)
    assert audited(daemon, action="start", run_id=mine.run_id)["caller"] == "run"
    assert audited(daemon, action="delete", run_id=mine.run_id)["caller"] == "run"
    follow(client("other").watch(theirs))
    client("admin").delete(theirs)
    assert audited(daemon, action="delete", run_id=theirs)["caller"] == "admin"


def test_runs_mine_is_what_a_person_types(
    daemon: DaemonProcess, client: Callable[[str], BenchClient]
) -> None:
    run_id = follow(client("run").evaluate(SPEC)).finished.run_id
    command = [sys.executable, "-m", "cbench_server", "runs", "--mine", "--output", "json"]
    for token, expected in (("run", [run_id]), ("other", [])):
        flags = ["--server", daemon.address, "--token", token]
        listed = preloaded.run([*command, *flags], capture_output=True, text=True, timeout=60)
        assert [each["run_id"] for each in json.loads(listed.stdout)] == expected
    client("run").delete(run_id)


def test_every_change_has_an_audit_line_at_every_log_level(
    daemon: DaemonProcess, client: Callable[[str], BenchClient]
) -> None:
    """Every RPC of the contract that is more than reading or scoring, tried one by one."""
    runner = client("run")
    digest, _ = runner.upload(examples(2))
    with start_system("echo", "", "3600") as stuck:
        dataset = {"name": "given", "upload": digest}
        run_id = runner.start({"systems": [{"target": stuck.address}], "datasets": [dataset]})
        runner.explain_wait(run_id, "at lunch")
        runner.cancel(run_id)
        runner.resume(run_id)
        runner.cancel(run_id)
    # Each by what it does, and the fields by which its line is known.
    lines: dict[str, dict[str, Any]] = {
        "Evaluate": {"action": "start", "run_id": run_id},
        "ExplainWait": {"action": "explain", "run_id": run_id},
        "CancelRun": {"action": "cancel", "run_id": run_id},
        "ResumeRun": {"action": "resume", "run_id": run_id},
        "UploadExamples": {"action": "upload", "digest": digest},
    }
    done = follow(runner.evaluate(SPEC)).finished.run_id
    with grpc.insecure_channel(daemon.address) as channel:
        stub = bench_pb2_grpc.BenchStub(channel)

        def call(method: str, request: Any, token: str = "run") -> Any:
            metadata = [("authorization", f"Bearer {token}")]
            return getattr(stub, method)(request, metadata=metadata, timeout=60)

        refs = [bench_pb2.EvaluatorRef(name="answer-quality")]
        made = call("Rescore", bench_pb2.RescoreRequest(run_id=done, evaluators=refs)).run.run_id
        lines["Rescore"] = {"action": "start", "run_id": made}
        follow(runner.watch(made))
        file = call("Export", bench_pb2.ExportRequest(run_id=done, format="run"))
        parts = [bench_pb2.ImportRequest(content=part.content, new_id=True) for part in file]
        copy = call("Import", iter(parts)).run.run_id
        lines["Import"] = {"action": "import", "run_id": copy}
        call("PinRun", bench_pb2.PinRunRequest(run_id=done))
        lines["PinRun"] = {"action": "pin", "run_id": done}
        call("PinRun", bench_pb2.PinRunRequest(run_id=done, unpin=True))
        lines["DeleteRun"] = {"action": "delete", "run_id": made}
        call("DeleteRun", bench_pb2.DeleteRunRequest(run_id=made))
        lines["PruneRuns"] = {"action": "prune", "caller": "admin"}
        call("PruneRuns", bench_pb2.PruneRunsRequest(keep=1000), "admin")
    with Attachment([Mine()], daemon.address, token="attach") as attachment:
        attachment.wait_attached(20)
    lines["Attach"] = {"action": "attach", "names": ["mine"], "caller": "attach"}
    for known in lines.values():
        entry = audited(daemon, **{"caller": "run", **known})
        assert entry["peer"].startswith("ipv4:127.0.0.1:")
    assert {path.rpartition("/")[2] for path in _served() if _changes(path)} == set(lines)


def test_deleting_what_is_not_there_is_no_change(
    daemon: DaemonProcess, client: Callable[[str], BenchClient]
) -> None:
    admin = client("admin")
    for unknown in ("", "no-such-run", "line\nbreak", "x" * 100_000):
        admin.delete(unknown)
    run_id = follow(admin.evaluate(SPEC)).finished.run_id
    admin.delete(run_id)
    assert audited(daemon, action="delete", run_id=run_id)["caller"] == "admin"
    deleted = [line for line in daemon.errors if '"action": "delete"' in line]
    assert not any(
        unknown in line for unknown in ('"run_id": ""', "no-such", "xxx") for line in deleted
    )


def _changes(path: str) -> bool:
    is_harmless = MethodOptions.NO_SIDE_EFFECTS
    changes_nothing = _served()[path].GetOptions().idempotency_level == is_harmless
    return not changes_nothing and not METHODS[path] & {"read", "score"}


class Mine:
    """Answers with the question, or waits for ever once it was told to."""

    name = "mine"
    max_concurrency = 1

    def __init__(self, version: str = "1", answers: int = 1000) -> None:
        self.version = version
        self.seen: list[dict[str, Any]] = []
        self._answers = answers

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.seen.append(example)
        if len(self.seen) > self._answers:
            await asyncio.Event().wait()
        return {**example, "response": example["question"]}


class Judge:
    """Scores everything alike."""

    name = "mine"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {"score": 1.0}


class Remembers:
    """A memory system that remembers nothing."""

    name = "theirs"

    def reset(self, scope: str) -> None:
        pass

    def ingest(self, scope: str, session: Any) -> None:
        pass

    def query(self, scope: str, question: Any) -> str:
        return ""


def _named(name: str) -> Mine:
    system = Mine()
    system.name = name
    return system


@pytest.mark.parametrize(
    "offered",
    [
        {"systems": [_named("theirs")]},
        {"systems": [_named("mine"), _named("theirs")]},
        {"memory_systems": [Remembers()]},
        {"evaluators": [Judge()]},
    ],
    ids=["system", "one among its own", "memory system", "evaluator"],
)
def test_a_token_attaches_only_what_is_listed_with_it(
    daemon: DaemonProcess, offered: dict[str, Any]
) -> None:
    with Attachment(server=daemon.address, token="attach", **offered) as attachment:
        with pytest.raises(Refused, match='token of "attach"') as refused:
            attachment.wait_attached(20)
        assert refused.value.code == "PERMISSION_DENIED"


def test_an_attached_system_takes_part_and_sees_no_references(
    daemon: DaemonProcess, client: Callable[[str], BenchClient]
) -> None:
    system = Mine()
    with Attachment([system], daemon.address, token="attach") as attachment:
        attachment.wait_attached(20)
        spec = {**SPEC, "systems": [{"attached": "mine"}]}
        seen = follow(client("run").evaluate(spec))
    assert seen.state == "SUCCEEDED"
    assert len(system.seen) == 3
    assert not {"answer", "answers"} & {field for example in system.seen for field in example}
    with pytest.raises(Refused) as refused:
        list(client("attach").rows(seen.finished.run_id, include_original=True))
    assert refused.value.code == "PERMISSION_DENIED"
    assert audited(daemon, action="attach", caller="attach")["names"] == ["mine"]


def test_a_name_that_returns_with_another_version_ends_the_run(
    daemon: DaemonProcess, client: Callable[[str], BenchClient]
) -> None:
    runner = client("run")
    first = Mine("1", answers=2)
    with Attachment([first], daemon.address, token="attach") as attachment:
        attachment.wait_attached(20)
        spec = {**SPEC, "systems": [{"attached": "mine"}], "timed_rows": 0}
        run_id = runner.start(spec)
        wait_until(lambda: len(first.seen) == 3)
        attachment.stop(0)
    second = Mine("2")
    with Attachment([second], daemon.address, token="attach") as attachment:
        attachment.wait_attached(20)
        ended = follow(runner.watch(run_id)).finished
        assert ended.failure.reason == "SYSTEM_CHANGED"
        assert 'version "2"' in ended.failure.message
        assert not second.seen
        # Taken up again, it finds the same.
        runner.resume(run_id)
        resumed = wait_until(
            lambda: run if (run := runner.get(run_id)).HasField("failure") else None
        )
        assert resumed.failure.reason == "SYSTEM_CHANGED"
        assert not second.seen
    with Attachment([Mine("1")], daemon.address, token="attach") as attachment:
        attachment.wait_attached(20)
        runner.resume(run_id)
        assert follow(runner.watch(run_id)).state == "SUCCEEDED"


def test_a_revoked_token_ends_its_open_calls_and_a_new_one_works_at_once(
    daemon: DaemonProcess, tokens: Tokens, client: Callable[[str], BenchClient]
) -> None:
    token = tokens.tell("create", "brief", "--role", "attach", "--role", "run", "--attach", "brief")
    assert token not in tokens.path.read_text()
    with Attachment([_named("brief")], daemon.address, token=token) as attachment:
        attachment.wait_attached(20)
        assert "brief" in {each.name for each in client(token).components().systems}
        tokens.tell("revoke", "brief")
        with pytest.raises(Refused) as refused:
            attachment.ended.result(20)
        assert refused.value.code == "UNAUTHENTICATED"
    with pytest.raises(Refused) as refused:
        client(token).components()
    assert refused.value.reason == "UNAUTHENTICATED"
    # Others were not touched.
    client("old-token").components()
    for action in ("token-added", "token-revoked"):
        assert audited(daemon, action=action, token="brief")["roles"] == "attach,run"


@pytest.mark.parametrize(
    "method",
    [
        EVALUATOR + "ScoreStream",
        BENCH + "UploadExamples",
        BENCH + "Import",
        BENCH + "GetRun",
        REFLECTION,
        "/grpc.health.v1.Health/Watch",
    ],
)
def test_an_open_call_of_every_kind_ends_with_its_token(
    daemon: DaemonProcess, tokens: Tokens, method: str
) -> None:
    """Also one that waits for more from its client, which nobody sends."""
    token = tokens.tell("create", "leaving", "--role", "run")
    is_over = threading.Event()

    def silence() -> Iterator[bytes]:
        is_over.wait(100)
        yield b""

    metadata = [("authorization", f"Bearer {token}")]
    with grpc.insecure_channel(daemon.address) as channel:
        watches = method.endswith("Watch")
        sent = iter([b""]) if watches else silence()
        call = channel.stream_stream(method)(sent, metadata=metadata, timeout=60)
        if watches:
            next(call)
        else:
            # What comes later over the same connection is served later.
            assert _code(channel, BENCH + "ListRuns", token) == "OK"
        tokens.tell("revoke", "leaving")
        assert call.code() is grpc.StatusCode.UNAUTHENTICATED
        is_over.set()


def test_a_bad_line_is_told_and_the_others_hold(
    daemon: DaemonProcess, tokens: Tokens, client: Callable[[str], BenchClient]
) -> None:
    text = tokens.path.read_text()
    tokens.path.write_text(f"{text}late read {digest_of('late')}\nbad line here\n")
    assert list(client("late").list()) == list(client("read").list())
    assert any("line is ignored" in line for line in daemon.errors)
    tokens.path.write_text(text)
