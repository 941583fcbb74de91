"""Serving options: how handlers declare them, and in which form they get them."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import grpc
import grpc.aio
import pytest

from cbench_client import Option, RemoteFailure, RemoteMemorySystem, Server
from cbench_client._gen.cbench.v1 import evaluator_pb2, memory_pb2, system_pb2
from cbench_client._gen.cbench.v1.evaluator_pb2_grpc import EvaluatorStub
from cbench_client._gen.cbench.v1.memory_pb2_grpc import MemorySystemStub
from cbench_client._gen.cbench.v1.system_pb2_grpc import SystemStub
from cbench_client.errors import NotServable
from cbench_client.host.adapters import SystemAdapter
from cbench_client.messages import convert
from cbench_client.messages.options import DeclaredOptions, declared_options
from tests.fixtures.serving import serving

Ratio = Annotated[float, Option("share to keep", minimum=0, maximum=1)]


@dataclass
class Settings:
    ratio: Ratio = 0.5
    mode: Literal["head", "tail"] = "head"
    stops: list[str] = field(default_factory=list)
    seed: int | None = None


class Fields(TypedDict):
    k: int
    ratio: NotRequired[Ratio]


class ByRecord:
    name = "record"

    def process(self, example: Any, options: Settings) -> Any:
        return {**example, "got": [type(options).__name__, options.ratio, options.mode]}


class ByTypedDict:
    name = "typed-dict"

    def process(self, example: Any, options: Fields) -> Any:
        return {**example, "got": [options["k"], options.get("ratio")]}


class ByKeywords:
    name = "keywords"

    async def process(self, example: Any, instruction: str, *, ratio: Ratio = 0.5, k=3) -> Any:
        return {**example, "got": [ratio, k]}


def hiding(function: Any) -> Any:
    def hidden(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return hidden


class Hidden:
    name = "hidden"

    @hiding
    def process(self, example: Any, options: Any = None) -> Any:
        return {**example, "got": options}


class HiddenKeywords:
    name = "hidden-keywords"

    @hiding
    @hiding
    def process(self, example: Any, *, ratio: Ratio = 0.5) -> Any:
        return {**example, "got": ratio}


class HiddenRecord:
    name = "hidden-record"

    @hiding
    def process(self, example: Any, options: Settings) -> Any:
        return {**example, "got": options.ratio}


class AnyKeywords:
    name = "any-keywords"

    def process(self, example: Any, **others: Any) -> Any:
        return {**example, "got": others}


class SomeAndOthers:
    name = "some-and-others"

    def process(self, example: Any, instruction: str, *, k: int = 3, **others: Any) -> Any:
        return {**example, "got": [k, others]}


class Opaque:
    """Decorated by an object, in which no signature is to be found."""

    def __init__(self, function: Any) -> None:
        self.functions = [function]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.functions[0](*args, **kwargs)


class HiddenWell:
    name = "hidden-well"
    process = Opaque(lambda example, ratio=0.5: {**example, "got": ratio})


class Plain:
    name = "plain"

    def process(self, example: Any) -> Any:
        return example


class Remembering:
    name = "remembering"

    def reset(self, scope: str) -> None: ...
    def ingest(self, turns: Any, scope: str, *, chunk: int = 8) -> None: ...
    def query(self, question: str, scope: str, *, k: int = 3) -> str:
        return f"{question} {k}"


class Weighing:
    name = "weighing"
    scores = ("distance", "share")
    lower_is_better = ("distance",)

    def score(self, original: Any, processed: Any, *, weight: float = 1.0) -> Any:
        return {"distance": weight, "share": 0.5}


HIDDEN = (Hidden(), HiddenKeywords(), HiddenRecord(), HiddenWell())
KEYWORDS = (ByKeywords(), AnyKeywords(), SomeAndOthers())
SYSTEMS = (ByRecord(), ByTypedDict(), *KEYWORDS, *HIDDEN, Plain())


def request(system: str, **options: Any) -> system_pb2.ProcessRequest:
    message = system_pb2.ProcessRequest(system=system)
    convert.example_to_proto({"question": "q"}, message.example)
    convert.fields_to_proto(options, message.options)
    return message


async def test_what_handlers_take_is_announced() -> None:
    async with serving(*SYSTEMS) as channel:
        described = await SystemStub(channel).Describe(system_pb2.SystemDescribeRequest())
    said = {info.name: declared_options(info) for info in described.systems}
    assert {
        name: [option.summary for option in each.options] for name, each in said.items() if each
    } == {
        "record": [
            "ratio: number from 0 up to 1, default 0.5",
            'mode: one of "head", "tail", default "head"',
            "stops: list, default []",
            "seed: whole number or null, default null",
        ],
        "typed-dict": ["k: whole number, required", "ratio: number from 0 up to 1"],
        "keywords": ["ratio: number from 0 up to 1, default 0.5", "k: any value, default 3"],
        "hidden": [],
        "hidden-keywords": ["ratio: number from 0 up to 1, default 0.5"],
        "hidden-record": [each.summary for each in said["record"].options],
        "hidden-well": [],
        "any-keywords": [],
        "some-and-others": ["k: whole number, default 3"],
        "plain": [],
    }
    takes_any = {name for name, each in said.items() if each and each.accepts_others}
    assert takes_any == {"hidden", "hidden-well", "any-keywords", "some-and-others"}
    assert said["any-keywords"] == DeclaredOptions(accepts_others=True)
    assert said["record"].options[0].description == "share to keep"
    assert said["plain"] == DeclaredOptions()
    assert said["hidden"] == DeclaredOptions(accepts_others=True)


@pytest.mark.parametrize(
    ("system", "options", "got"),
    [
        ("record", {"ratio": 1}, ["Settings", 1.0, "head"]),
        ("typed-dict", {"k": 2.0}, [2, None]),
        ("keywords", {"k": 5}, [0.5, 5]),
        ("hidden", {"ratio": 0.1}, {"ratio": 0.1}),
        ("hidden", {}, {}),
        ("hidden-keywords", {"ratio": 0.1}, 0.1),
        ("hidden-record", {"ratio": 0.1}, 0.1),
        ("hidden-well", {"ratio": 0.1}, 0.1),
        ("any-keywords", {"ratio": 0.1, "a-b": "x"}, {"ratio": 0.1, "a-b": "x"}),
        ("any-keywords", {}, {}),
        ("some-and-others", {"k": 5.0, "ratio": 0.1}, [5, {"ratio": 0.1}]),
    ],
)
async def test_a_handler_gets_them_in_its_own_form(
    system: str, options: dict[str, Any], got: Any
) -> None:
    async with serving(*SYSTEMS) as channel:
        reply = await SystemStub(channel).Process(request(system, **options))
    assert convert.value_from_proto(reply.fields["got"]) == got


@pytest.mark.parametrize(
    ("system", "options", "words"),
    [
        ("record", {"raito": 0.1}, 'has no option "raito"; did you mean "ratio"?'),
        ("record", {"ratio": 1.5}, 'option "ratio": 1.5 is above 1'),
        ("record", {"ratio": True}, 'option "ratio": true is not a number'),
        ("record", {"mode": "heat"}, '"heat" is none of "head", "tail"; did you mean "head"?'),
        ("record", {"seed": 1.5}, 'option "seed": 1.5 is not a whole number'),
        ("typed-dict", {}, 'needs the option "k"'),
        ("keywords", {"ratio": "abc"}, 'option "ratio": "abc" is not a number'),
        ("some-and-others", {"k": "five"}, 'option "k": "five" is not a whole number'),
        ("some-and-others", {"instruction": "x"}, 'has no option "instruction": its method'),
        ("any-keywords", {"example": "x"}, 'has no option "example": its method is called with'),
    ],
)
async def test_a_handler_never_sees_what_it_does_not_take(
    system: str, options: dict[str, Any], words: str
) -> None:
    async with serving(*SYSTEMS) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await SystemStub(channel).Process(request(system, **options))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert words in (refused.value.details() or "")


async def test_a_memory_gets_options_where_it_names_them() -> None:
    async with serving(Remembering()) as channel:
        stub = MemorySystemStub(channel)
        described = await stub.Describe(memory_pb2.MemorySystemDescribeRequest())
        options = {name: convert.value_to_proto(7) for name in ("chunk", "k")}
        await stub.Ingest(memory_pb2.IngestRequest(scope="s", options=options))
        answer = await stub.Query(memory_pb2.QueryRequest(scope="s", question="q", options=options))
    declared = declared_options(described.systems[0])
    assert declared is not None
    assert set(declared.names) == {"chunk", "k"}
    assert answer.response == "q 7"


def test_options_of_a_remote_memory_reach_it() -> None:
    with Server(Remembering()) as server:
        with RemoteMemorySystem(server.address, options={"chunk": 2, "k": 9}) as memory:
            memory.ingest([{"role": "user", "content": "tea"}])
            assert memory.query("q") == "q 9"
        with (
            RemoteMemorySystem(server.address, options={"k": "nine"}) as memory,
            pytest.raises(RemoteFailure, match='option "k": "nine" is not a whole number'),
        ):
            memory.query("q")


async def test_an_evaluator_says_its_options_and_which_way_is_better() -> None:
    async with serving(Weighing()) as channel:
        stub = EvaluatorStub(channel)
        described = await stub.Describe(evaluator_pb2.EvaluatorDescribeRequest())
        options = {"weight": convert.value_to_proto(2)}
        reply = await stub.Score(evaluator_pb2.ScoreRequest(options=options))
    (info,) = described.evaluators
    assert [(score.name, score.direction) for score in info.scores] == [
        ("distance", evaluator_pb2.SCORE_DIRECTION_LOWER_IS_BETTER),
        ("share", evaluator_pb2.SCORE_DIRECTION_HIGHER_IS_BETTER),
    ]
    assert info.declared_options.options[0].name == "weight"
    assert reply.scores["distance"] == 2.0


def test_a_range_needs_a_number() -> None:
    class Confused:
        name = "confused"

        def process(self, example: Any, *, mode: Annotated[str, Option(minimum=1)] = "a") -> Any:
            return example

    with pytest.raises(NotServable, match='"mode" has a range, and no number as its type'):
        SystemAdapter(Confused(), None)
