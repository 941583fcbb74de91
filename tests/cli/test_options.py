"""`--option` and `--only-system`: who gets an option, who is told that there is none."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench, complaint, strict
from tests.conftest import Start

SERVED = """
from dataclasses import dataclass
from typing import Annotated
from cbench_client import Option, serve

@dataclass
class Settings:
    ratio: Annotated[float, Option("share of the words to keep", minimum=0, maximum=1)] = 0.5

class Cutting:
    def __init__(self, name): self.name = name
    def process(self, example, options: Settings):
        words = example["context"].split()
        return {**example, "context": " ".join(words[: int(len(words) * options.ratio)])}

class Remembering:
    name = "remembering"
    def reset(self, scope): ...
    def ingest(self, turns, scope): ...
    def query(self, question, scope, *, k: int = 3): return str(k)

class Weighing:
    name = "weighing"
    scores = ("weight",)
    def score(self, original, processed, *, weight: float = 1.0): return {"weight": weight}

serve([Cutting("one"), Cutting("two"), Remembering(), Weighing()])
"""
# As a server from bare protos, whose description has no word on options.
SILENT = """
import asyncio
import grpc
from cbench_client._gen.cbench.v1 import system_pb2, system_pb2_grpc

class Silent(system_pb2_grpc.SystemServicer):
    async def Describe(self, request, context):
        return system_pb2.SystemDescribeResponse(systems=[system_pb2.SystemInfo(name="silent")])

    async def Process(self, request, context):
        return system_pb2.ProcessResponse(example=request.example)

async def main():
    server = grpc.aio.server()
    system_pb2_grpc.add_SystemServicer_to_server(Silent(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"cbench|1|tcp|127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()

asyncio.run(main())
"""
ONE_EXAMPLE = ("--dataset", "mini-qa", "-n", "1", "--ask-again", "0", "--timed-rows", "0")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "served.py"
    path.write_text(SERVED)
    return path


@pytest.fixture
def launch(program: Path) -> tuple[str, ...]:
    return ("run", "--launch", f"{sys.executable} {program}", *ONE_EXAMPLE)


def test_launched_systems_are_known_by_the_names_they_announce(
    cbench: Cbench, launch: tuple[str, ...]
) -> None:
    flags = ("--option", "one.ratio=0", "--option", "ratio=1", "--builtin", "identity")
    run = strict(cbench(*launch, *flags, "--output", "json").stdout)
    compressed = {name: run["summary"][name]["mean_context_tokens_out"] for name in ("one", "two")}
    assert compressed["one"] == 0 < compressed["two"]
    assert [note["text"] for note in run["notes"] if note["code"] == "OPTION_NOT_TAKEN"] == [
        'identity has no option "ratio" and ran without.'
    ]


def test_what_a_program_serves_is_listed_with_its_options(cbench: Cbench, program: Path) -> None:
    launch = f"{sys.executable} {program}"
    listed = strict(cbench("systems", "--launch", launch, "--json").stdout)
    taken = {
        each["name"]: [option["name"] for option in each["declared"]["options"]] for each in listed
    }
    assert taken == {
        "one": ["ratio"],
        "two": ["ratio"],
        "remembering": ["k"],
        "weighing": ["weight"],
    }
    kinds = ("", "", ", memory", ", evaluator")
    assert [each["location"] for each in listed] == [launch + kind for kind in kinds]
    shown = cbench("systems", "--launch", launch).stdout
    assert "ratio: number from 0 up to 1, default 0.5" in shown
    assert "share of the words to keep" in shown
    refused = cbench("systems", "--launch", launch, "--system", "127.0.0.1:1")
    assert "name two processes" in complaint(refused)


def test_evaluators_of_a_program_are_listed_with_their_options(
    cbench: Cbench, start: Start, program: Path
) -> None:
    [weighing] = strict(
        cbench("evaluators", "--launch", f"{sys.executable} {program}", "--json").stdout
    )
    assert weighing["declared_options"]["options"][0]["default_value"] == {"double_value": 1.0}
    target = start(sys.executable, program)
    assert "weight: number, default 1.0" in cbench("evaluators", "--system", target).stdout
    for command, known in (
        ("evaluators", "weighing"),
        ("systems", "one, two, remembering, weighing"),
    ):
        unknown = cbench(command, "--system", f"{target}/wieghing")
        assert f'serves no "wieghing". It serves: {known}.' in complaint(unknown)
    assert "does not serve cbench.v1.Evaluator" in complaint(
        cbench("evaluators", "--launch", f"{sys.executable} {_silent(program.parent)}")
    )


def _silent(folder: Path) -> Path:
    path = folder / "silent.py"
    path.write_text(SILENT)
    return path


def test_one_of_several_launched_systems_is_chosen(cbench: Cbench, launch: tuple[str, ...]) -> None:
    done = cbench(*launch, "--only-system", "two", "--name", "mine", "--output", "json")
    assert list(strict(done.stdout)["summary"]) == ["mine"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--option", "raito=0.1"), 'no system of the run has the option "raito"; did you mean'),
        (("--option", "one.raito=1"), 'system "one" has no option "raito"; did you mean "ratio"?'),
        (("--option", "ratio=1.5"), 'option "ratio": 1.5 is above 1'),
        (("--option", "oen.ratio=1"), 'no system "oen" on this command line. Did you mean "one"?'),
        (("--only-system", "tow"), 'nothing launched serves "tow". Did you mean "two"?'),
        (("--name", "x", "--option", "two.ratio=1"), "Choose one with --only-system one"),
        (("--name", "x"), 'serves one, two; to name one of them "x", say which'),
    ],
)
def test_mistakes_end_before_the_run(
    cbench: Cbench, launch: tuple[str, ...], flags: tuple[str, ...], words: str
) -> None:
    done = cbench(*launch, *flags)
    assert done.returncode == 2
    assert words in complaint(done)


def test_served_systems_are_known_by_the_names_they_announce(
    cbench: Cbench, start: Start, program: Path
) -> None:
    served = ("run", "--system", start(sys.executable, program), *ONE_EXAMPLE)
    run = strict(cbench(*served, "--option", "one.ratio=0", "--output", "json").stdout)
    kept = {name: metrics["mean_context_tokens_out"] for name, metrics in run["summary"].items()}
    assert kept["one"] == 0 < kept["two"]
    refused = cbench(*served, "--option", "oen.ratio=1")
    assert 'no system "oen" on this command line. Did you mean "one"?' in complaint(refused)


def test_an_option_that_nobody_checks_is_told(cbench: Cbench, tmp_path: Path) -> None:
    launch = (
        "run",
        "--launch",
        f"{sys.executable} {_silent(tmp_path)}",
        *ONE_EXAMPLE,
        "--output",
        "json",
    )
    run = strict(cbench(*launch, "--option", "raito=0.1", "--option", "silent.k=2").stdout)
    assert [note["text"] for note in run["notes"] if note["code"] == "OPTION_NOT_CHECKED"] == [
        'silent does not declare its options; "raito", "k" went to it unchecked.'
    ]
    run = strict(cbench(*launch, "--option", "silent.k=2").stdout)
    assert [note["text"] for note in run["notes"] if note["code"] == "OPTION_NOT_CHECKED"] == [
        'silent does not declare its options; "k" went to it unchecked.'
    ]
    run = strict(cbench(*launch).stdout)
    assert [note for note in run["notes"] if note["code"] == "OPTION_NOT_CHECKED"] == []


def test_options_that_are_taken_unseen_are_told_in_one_line(cbench: Cbench, tmp_path: Path) -> None:
    program = tmp_path / "eager.py"
    program.write_text(
        "from cbench_client import serve\n"
        "class Kept:\n"
        "    def process(self, example, options=None): return example\n"
        "class Spread:\n"
        "    def process(self, example, *, ratio=1.0, **more): return example\n"
        "kept, spread = Kept(), Spread()\n"
        "kept.name, spread.name = 'kept', 'spread'\n"
        "serve(systems=[kept, spread])\n"
    )

    def told(*options: str) -> list[str]:
        flags = [word for option in options for word in ("--option", option)]
        launch = ("run", "--launch", f"{sys.executable} {program}", *ONE_EXAMPLE)
        run = strict(cbench(*launch, *flags, "--output", "json").stdout)
        return [note["text"] for note in run["notes"] if note["code"] == "OPTION_NOT_CHECKED"]

    assert told("raito=0.1") == [
        'kept, spread take any option; "raito" went to them unchecked.',
    ]
    assert told("ratio=0.1") == ['kept takes any option; "ratio" went to it unchecked.']
    assert told() == []


def test_memories_and_evaluators_are_checked_too(
    cbench: Cbench, start: Start, program: Path
) -> None:
    target = start(sys.executable, program)
    memory = ("memory", "run", "--system", target, "--dataset", "mini-memory", "-n", "1")
    assert 'has the option "kk"; did you mean "k"?' in complaint(
        cbench(*memory, "--option", "kk=1")
    )
    scoring = ("run", "--builtin", "identity", "--evaluator", f"weighing@{target}", *ONE_EXAMPLE)
    wrong = cbench(*scoring, "--evaluator-option", "weighing.wieght=2")
    assert wrong.returncode == 2
    assert 'evaluator "weighing" has no option "wieght"; did you mean "weight"?' in complaint(wrong)


def test_options_are_listed(cbench: Cbench, start: Start, program: Path) -> None:
    target = start(sys.executable, program)
    assert (
        "ratio: number from 0 up to 1, default 0.5" in cbench("systems", "--system", target).stdout
    )
    one, *_ = strict(cbench("systems", "--system", target, "--output", "json").stdout)
    assert one["declared"]["options"][0]["description"] == "share of the words to keep"
    assert "seed: whole number, default 0" in cbench("systems").stdout
