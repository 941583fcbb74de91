"""Every limit is met by what is just beyond it, and is on the page for operators."""

import ast
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2, gateway_pb2
from cbench_client.errors import Unencodable
from cbench_client.messages import convert
from cbench_client.messages.room import MAX_ANSWER_VALUES
from cbench_client.remote.call_stream import MAX_BATCH_BYTES
from cbench_server import limits
from cbench_server.daemon.embedded import embedded
from cbench_server.datasets.generated.parameters import Parameters, read_parameters
from cbench_server.datasets.mapping import read_path
from cbench_server.datasets.prompts.template import parse
from cbench_server.datasets.readers.files import iterate_file
from cbench_server.datasets.validate import IdLedger, check_example
from cbench_server.errors import BadDataset, EvaluatorBroken, InvalidInput, InvalidSpec, NotFound
from cbench_server.evaluators import CodeExecution, LLMJudge, MemoryJudge
from cbench_server.evaluators.judge.limits import pace_of
from cbench_server.evaluators.judge.yes_no import parse_yes_no
from cbench_server.limits import LONG_TEXT, text_size
from cbench_server.models.chat import ChatClient, ChatFailed
from cbench_server.models.likelihood import TokenClient
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.replica_finder import check_replicas
from cbench_server.runs.spec_limits import check_limits
from cbench_server.scoring.assessment import assess_now, checked
from cbench_server.spec import DatasetRef, EvaluatorRef, MetricRef, RunSpec, SystemRef
from cbench_server.systems.caller import Answer
from cbench_server.types import Assessment
from tests.e2e.processes import Process, examples
from tests.fixtures import preloaded
from tests.fixtures.model_server import ModelServer, clean_environment, server

from .steps import LONGEST_S, cpu_seconds_afresh

__all__ = ["ModelServer", "clean_environment", "server"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("operations.md", "security.md", "threat-model.md")


@pytest.mark.parametrize(
    ("most", "beyond"),
    [
        ({"repeats": limits.MAX_REPEATS}, {"repeats": limits.MAX_REPEATS + 1}),
        (
            {"row_timeout": float(limits.MAX_ROW_TIMEOUT_S)},
            {"row_timeout": limits.MAX_ROW_TIMEOUT_S + 1.0},
        ),
        ({"row_timeout": 1.0}, {"row_timeout": float("nan")}),
        (
            {"wait_timeout": float(limits.MAX_WAIT_TIMEOUT_S)},
            {"wait_timeout": limits.MAX_WAIT_TIMEOUT_S + 1.0},
        ),
        (
            {"systems": (SystemRef(builtin="identity", name="x" * limits.MAX_NAME),)},
            {"systems": (SystemRef(builtin="identity", name="x" * (limits.MAX_NAME + 1)),)},
        ),
        (
            {"systems": (SystemRef(builtin="identity"),) * limits.MAX_SYSTEMS},
            {"systems": (SystemRef(builtin="identity"),) * (limits.MAX_SYSTEMS + 1)},
        ),
        (
            {"datasets": (DatasetRef("mini-qa"),) * limits.MAX_DATASETS},
            {"datasets": (DatasetRef("mini-qa"),) * (limits.MAX_DATASETS + 1)},
        ),
        (
            {"evaluators": (EvaluatorRef("rouge"),) * limits.MAX_EVALUATORS},
            {"evaluators": (EvaluatorRef("rouge"),) * (limits.MAX_EVALUATORS + 1)},
        ),
        (
            {"metrics": (MetricRef("score"),) * limits.MAX_METRICS},
            {"metrics": (MetricRef("score"),) * (limits.MAX_METRICS + 1)},
        ),
        ({"labels": {"": "x" * limits.MAX_LABELS}}, {"labels": {"x": "x" * limits.MAX_LABELS}}),
    ],
)
def test_a_spec_beyond_a_limit_is_refused(most: dict[str, Any], beyond: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"systems": (SystemRef(builtin="identity"),), "datasets": ()}
    check_limits(RunSpec(**{**usual, **most}))
    with pytest.raises(InvalidSpec):
        check_limits(RunSpec(**{**usual, **beyond}))


@pytest.mark.parametrize(
    ("most", "beyond", "said"),
    [
        ("x" * limits.MAX_TEMPLATE_LENGTH, "x" * (limits.MAX_TEMPLATE_LENGTH + 1), "characters"),
        (
            "{{" * (limits.MAX_TEMPLATE_PIECES // 2),
            "{{" * (limits.MAX_TEMPLATE_PIECES // 2 + 1),
            "lines and braces",
        ),
        (
            "x\n" * limits.MAX_TEMPLATE_PIECES,
            "x\n" * (limits.MAX_TEMPLATE_PIECES + 1),
            "lines and braces",
        ),
        (
            "{context}\n" * limits.MAX_TIMES_OF_A_FIELD,
            "{context}\n" * (limits.MAX_TIMES_OF_A_FIELD + 1),
            "names {context} 21 times",
        ),
    ],
)
def test_a_template_is_only_so_long(most: str, beyond: str, said: str) -> None:
    assert cpu_seconds_afresh(parse_afresh, most) < LONGEST_S
    with pytest.raises(InvalidSpec, match=said):
        parse(beyond)


def parse_afresh(text: str) -> None:
    parse.cache_clear()
    parse(text)


def test_templates_of_the_past_are_not_kept() -> None:
    """Clients make as many as they like, and each takes megabytes."""
    for number in range(100):
        parse(f"{{question}} {number}")
    assert parse.cache_info().currsize <= 16


def test_a_line_of_a_file_is_only_so_long(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    with file.open("wb") as out:
        out.write(b'{"context": "first"}\n{"context": "')
        for _ in range(limits.MAX_LINE_BYTES // 2**20):
            out.write(b"x" * 2**20)
        out.write(b'"}\n{"context": "last"}\n')
    with pytest.raises(BadDataset, match="line 2: longer than 134,217,728 bytes"):
        list(iterate_file(file))
    left = [each["context"] for each in iterate_file(file, skip_bad_lines=True)]
    assert left == ["first", "last"]


def test_a_generated_dataset_is_only_so_large() -> None:
    def read(config: str) -> Parameters:
        return read_parameters(config, "niah", {}, Parameters())

    assert read("length=2000k,count=10000").lengths == (limits.MAX_GENERATED_TOKENS,)
    for beyond in ("length=2001k", "count=10001"):
        with pytest.raises(NotFound, match=beyond):
            read(beyond)


def test_a_name_of_a_score_is_only_so_long() -> None:
    longest = "x" * limits.MAX_SCORE_NAME
    assert checked("mine", {longest: 1.0}).scores == {longest: 1.0}
    with pytest.raises(EvaluatorBroken, match="1 to 200 characters"):
        checked("mine", {f"{longest}x": 1.0})


def test_details_are_only_so_large() -> None:
    text = "x" * (limits.MAX_DETAILS - 100)
    assert checked("mine", Assessment({"mine": 1.0}, {"said": text})).details == {"said": text}
    with pytest.raises(EvaluatorBroken, match="details of more than 16,777,216 bytes"):
        checked("mine", Assessment({"mine": 1.0}, {"said": f"{text}{'x' * 100}"}))


def test_a_program_is_only_so_long() -> None:
    given = {"test_list": ["assert f() == 1"]}
    program = "def f():\n    return 1\n#"
    response = program.ljust(limits.MAX_PROGRAM + 1, "x")
    said = assess_now(CodeExecution(), given, {"response": response})
    assert said.scores["pass_at_1"] == 0.0
    assert "16,777,217 characters" in json.dumps(said.details)


def test_a_path_of_a_mapping_is_only_so_long() -> None:
    assert len(read_path("a" + ".b" * 499)) == 500
    with pytest.raises(InvalidSpec, match="at most 1,000 characters"):
        read_path("a" + ".b" * 500)


def test_an_id_is_only_so_long() -> None:
    example = {"context": "", "id": "x" * limits.MAX_ID}
    assert check_example(example, 0, "mini", IdLedger()) == example["id"]
    with pytest.raises(BadDataset, match="has 1,001 characters; an id has at most 1,000"):
        check_example({**example, "id": "x" * 1_001}, 0, "mini", IdLedger())


def test_a_system_has_only_so_many_replicas(tmp_path: Path) -> None:
    def served_at(count: int) -> SystemRef:
        first, *others = [f"127.0.0.1:{1000 + number}" for number in range(count)]
        return SystemRef(name="a", target=first, replicas=tuple(others))

    check_replicas(served_at(limits.MAX_REPLICAS))
    with pytest.raises(InvalidSpec, match="at most 256 replicas, not 257"):
        check_replicas(served_at(limits.MAX_REPLICAS + 1))
    launch = ("--launch", f'{sys.executable} -c \'open("{tmp_path / "started"}", "w")\'')
    done = preloaded.run(
        [str(preloaded.CBENCH), "run", *launch, "--replicas", "257", "--dataset", "mini-qa"],
        capture_output=True,
        text=True,
        check=False,
    )
    said = "cbench: a system has at most 256 replicas, not 257.\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert not (tmp_path / "started").exists()


def test_a_daemon_refuses_them(tmp_path: Path) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
    with embedded(home=str(tmp_path)) as daemon, BenchClient(daemon) as client:
        for change, said in (
            ({"repeats": limits.MAX_REPEATS + 1}, "repeats must be at most 10,000"),
            ({"row_timeout": 1e6}, "row_timeout must be at most 21,600 s"),
            ({"evaluators": [{"name": "rouge"}] * 65}, "at most 64 evaluators, not 65"),
            ({"max_concurrency": 1025}, "max_concurrency must be at most 1024, not 1025"),
            ({"prompt": {"few_shot": 101}}, "few_shot must be from 0 to 100, not 101"),
        ):
            with pytest.raises(Refused, match=said):
                client.start({**spec, **change})


@pytest.mark.parametrize(
    "beyond",
    [
        {"repeats": limits.MAX_JUDGE_REPEATS + 1},
        {"repeats": 0},
        {"max_retries": limits.MAX_JUDGE_RETRIES + 1},
        {"timeout": limits.MAX_JUDGE_TIMEOUT_S + 1},
        {"timeout": float("nan")},
        {"rpm": limits.MIN_JUDGE_RPM / 2},
        {"rpm": float("nan")},
        {"model": "m" * (limits.MAX_MODEL_NAME + 1)},
        {"base_url": "http://" + "h" * limits.MAX_MODEL_NAME},
    ],
)
@pytest.mark.parametrize("kind", [LLMJudge, MemoryJudge])
def test_a_judge_beyond_a_limit_is_refused(kind: Any, beyond: dict[str, Any]) -> None:
    usual = {"base_url": "http://127.0.0.1:1", "model": "m", "api_key": ""}
    kind(**usual, repeats=limits.MAX_JUDGE_REPEATS, max_retries=limits.MAX_JUDGE_RETRIES)
    with pytest.raises(InvalidInput, match=next(iter(beyond))):
        kind(**{**usual, **beyond})


def test_a_request_is_only_so_large(tmp_path: Path) -> None:
    def request(characters: int, options: int) -> bytes:
        spec = bench_pb2.RunSpec()
        system = spec.systems.add(builtin="identity", name="x" * characters)
        for number in range(options):
            system.options[f"o{number}"].bool_value = True
        return bench_pb2.EvaluateRequest(spec=spec).SerializeToString()

    largest, most = limits.MAX_REQUEST_BYTES, limits.MAX_REQUEST_PARTS
    with (
        embedded(home=tmp_path) as address,
        grpc.insecure_channel(address) as channel,
    ):
        evaluate = channel.unary_stream("/cbench.v1.Bench/Evaluate")

        def told(data: bytes) -> str:
            with pytest.raises(grpc.RpcError) as refused:
                list(evaluate(data))
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            return str(refused.value.details())

        # One that is read is refused for what it asks.
        assert "bytes" not in told(request(largest - 1_000, 0))
        assert "bytes, and at most 1,048,576 are read. Give" in told(request(largest, 0))
        assert "parts" not in told(request(0, most // 6))
        assert "more than 20,000 parts" in told(request(0, most // 2))


def test_nobody_decides_on_the_pace_of_others() -> None:
    slow, quick = pace_of("http://h", "shared", 0.1), pace_of("http://h", "shared", 600.0)
    for _ in range(3):
        slow.reserve(0.1, now=100.0)
    assert quick.reserve(600.0, now=100.0) == 0.0
    assert pace_of("http://h", "shared", 600.0) is quick


def test_of_a_long_reply_both_ends_are_read() -> None:
    middle = "x" * (limits.MAX_VERDICT_HEAD + limits.MAX_VERDICT_TAIL)
    assert parse_yes_no(f"{middle[: limits.MAX_VERDICT_HEAD]} YES {middle}") is None
    assert parse_yes_no(f"{middle} YES") is True
    assert parse_yes_no(f"YES {middle}") is True


async def test_a_model_answers_only_so_much(server: ModelServer) -> None:
    server.answer(200, b" " * (limits.MAX_ANSWER_BYTES + 1))
    client = ChatClient(server.url, "m", max_retries=0)
    with pytest.raises(ChatFailed, match="more than 16 MB"):
        await client.complete([{"role": "user", "content": "?"}])
    await client.close_connections()


@pytest.mark.parametrize(
    "beyond",
    ["[" + "{}," * (limits.MAX_REPLY_VALUES // 2) + "{}]", "1" * 101, "[" * 100_000],
    ids=["values", "digits", "depth"],
)
async def test_a_model_answers_with_only_so_many_values(server: ModelServer, beyond: str) -> None:
    """Reading them would hold the event loop: 57 MB of brackets took 108 s and 4 GB."""
    usual = '{"choices": [{"message": {"content": "Paris"}}], "usage": {"x": %s}}'
    client = ChatClient(server.url, "m", max_retries=0)
    asked = [{"role": "user", "content": "?"}]
    server.answer(200, (usual % f'"{"1" * 10_000_000}"').encode())
    server.answer(200, (usual % beyond).encode())
    assert (await client.complete(asked)).content == "Paris"
    with pytest.raises(ChatFailed, match=r"more than 100,000 values|is not JSON") as failed:
        await client.complete(asked)
    assert failed.value.failure.reason == "BAD_RESPONSE"
    await client.close_connections()


async def test_a_model_tells_of_only_so_many_tokens(server: ModelServer) -> None:
    client = TokenClient(server.url, "m", max_retries=0)
    server.answer(200, b'{"tokens": [%s 1]}' % (b"1," * (limits.MAX_TOKEN_VALUES - 10)))
    server.answer(200, b'{"tokens": [%s 1]}' % (b"1," * limits.MAX_TOKEN_VALUES))
    told = await client.post("/tokenize", {"messages": []})
    assert len(told["tokens"]) == limits.MAX_TOKEN_VALUES - 9
    with pytest.raises(ChatFailed, match="more than 1,000,000 values"):
        await client.post("/tokenize", {"messages": []})
    await client.close_connections()


async def test_an_attachment_offers_only_so_much() -> None:
    hello = gateway_pb2.Hello()
    for number in range(limits.MAX_OFFERED):
        hello.systems.add(name=f"s{number}")
    await Attachments().add(hello)
    hello.evaluators.add(name="one more")
    with pytest.raises(InvalidInput, match="at most 256 names, not 257"):
        await Attachments().add(hello)


async def test_only_so_many_processes_are_attached() -> None:
    attachments = Attachments()
    for number in range(limits.MAX_ATTACHED + 1):
        hello = gateway_pb2.Hello()
        hello.systems.add(name=f"s{number}")
        if number < limits.MAX_ATTACHED:
            await attachments.add(hello)
    with pytest.raises(InvalidInput, match="256 processes are attached"):
        await attachments.add(hello)


def test_a_process_describes_only_so_many_systems(tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(
        "from cbench_client import serve\n\n"
        "class Named:\n    def __init__(self, name):\n        self.name = name\n"
        "    def process(self, example):\n        return example\n\n"
        f"serve([Named(f's{{n}}') for n in range({limits.MAX_DESCRIBED + 1})], '127.0.0.1:0')\n"
    )
    with (
        Process([sys.executable, str(script)]) as system,
        embedded(home=str(tmp_path / "home")) as daemon,
        BenchClient(daemon) as client,
    ):
        spec = {"systems": [{"target": system.address}], "datasets": [{"name": "mini-qa"}]}
        with pytest.raises(Refused, match="describes 65 systems"):
            client.start(spec)


def test_an_answer_holds_only_so_many_values() -> None:
    from cbench_client._gen.cbench.v1 import system_pb2

    for value, is_taken in (
        ([True] * MAX_ANSWER_VALUES, True),
        ([True] * (MAX_ANSWER_VALUES + 1), False),
        ({"a": [[1] * 1000] * (MAX_ANSWER_VALUES // 1000)}, False),
    ):
        message = system_pb2.ProcessResponse()
        convert.fields_to_proto({"response": value}, message.fields)
        if is_taken:
            assert convert.answer_from_proto(message, {})[0] == {"response": value}
        else:
            with pytest.raises(Unencodable, match="more than 50,000 values"):
                convert.answer_from_proto(message, {})


@pytest.mark.parametrize("characters", [10, MAX_BATCH_BYTES + 1], ids=["streamed", "alone"])
def test_a_message_of_too_many_parts_is_not_parsed(tmp_path: Path, characters: int) -> None:
    """Neither on a stream, nor as the answer to a call that is too large for one."""
    script = tmp_path / "crowd.py"
    script.write_text(
        "from cbench_client import serve\n\n"
        "class Crowd:\n    name = 'crowd'\n"
        "    def process(self, example):\n"
        "        if example['id'] == 'e1':\n"
        "            return {'response': [True] * 300_000}\n"
        "        return {'response': 'x' * 100_000}\n\n"
        "serve(Crowd(), '127.0.0.1:0')\n"
    )
    with (
        Process([sys.executable, str(script)]) as system,
        embedded(home=str(tmp_path / "home")) as daemon,
        BenchClient(daemon) as client,
    ):
        given = examples(4)
        given[1] |= {"context": "x" * characters}
        digest, _ = client.upload(given)
        dataset = {"name": "given", "upload": digest}
        events = client.evaluate({"systems": [{"target": system.address}], "datasets": [dataset]})
        rows = [event.row for event in events if event.WhichOneof("kind") == "row"]
    failed = {row.example_id.text: row.failure for row in rows if row.HasField("failure")}
    assert len(rows) == 4
    assert [*failed] == ["e1"]
    assert failed["e1"].reason == "UNDECODABLE_RESPONSE"
    assert "more than 250,000 parts" in failed["e1"].message


@pytest.mark.parametrize(
    "value",
    [
        {"a": "x" * LONG_TEXT},
        {"a": {"b": [{"c": "x" * LONG_TEXT}]}},
        [["x" * LONG_TEXT]],
        [True] * 4_000_000,
        {str(number): None for number in range(LONG_TEXT)},
        ["x" * 5_000] * 30_000,
    ],
)
def test_nested_text_and_values_count(value: Any) -> None:
    """What is long however deep is not scored on the loop, nor held beyond the budget."""
    assert text_size({"response": value}) > LONG_TEXT


# The most values that an answer may hold, in every form that they can take.
CROWDS: dict[str, dict[str, Any]] = {
    "fields": {f"k{number}": number for number in range(49_000)},
    "fields with lists": {f"k{number}": [number] for number in range(24_000)},
    "fields with maps": {f"k{number}": {"a": number} for number in range(24_000)},
    "lists in a list": {"r": [[number] for number in range(24_000)]},
    "texts in a list": {"r": ["x" * 2_000] * 49_000},
    "long names": {f"{number}".rjust(2_000): number for number in range(49_000)},
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_of_answers_with_many_values_all_is_counted_and_soon(crowd: str) -> None:
    """A lane asks several times for the size of an answer."""
    processed = CROWDS[crowd]
    answer = Answer(None, processed, 0.0)
    started = time.thread_time()
    sizes = [answer.own_size for _ in range(10)]
    assert time.thread_time() - started < LONGEST_S
    assert min(sizes) > max(0.9 * len(json.dumps(processed)), LONG_TEXT)
    answer.processed = {"response": "short"}
    assert answer.own_size < 100


def _tests_named(page: str) -> set[str]:
    return set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", (ROOT / "docs" / page).read_text()))


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page: str) -> None:
    """A promise is worth what the test beside it shows."""
    named = _tests_named(page)
    assert named
    for each in named:
        path, _, name = each.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {node.name for node in tree.body if isinstance(node, functions)}, each


def test_every_limit_is_on_the_page_with_its_test() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    for each in limits.LIMITS:
        assert f"| {each.name} |" in page
        assert each.test in page
