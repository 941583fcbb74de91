"""Prompts of a run: where few-shot examples come from, what is official, and who is told."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_client.host.attachment import Attachment
from cbench_client.messages.convert import fields_from_proto
from cbench_server import evaluate
from cbench_server.daemon.embedded import embedded
from cbench_server.datasets.prompts.prompt import BARE, Asking, Prompt
from cbench_server.errors import InvalidSpec
from cbench_server.evaluators import AnswerQuality
from cbench_server.registry import Registry, registry
from cbench_server.runs.prompting import SAME_ROWS, axis_of, resolve_prompts
from cbench_server.runs.resolution import resolve_datasets
from cbench_server.spec import DatasetRef, PromptRef, RunSpec, SystemRef
from cbench_server.systems.caller import Call, Process, call_one
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller
from tests.datasets.test_records import FIXTURES


class NoUploads:
    """Nobody has sent anything."""

    def iterate(self, digest: str) -> Iterator[dict[str, Any]]:
        return iter(())

    def count(self, digest: str) -> int:
        return 0


def asking_of(dataset: DatasetRef, prompt: PromptRef | None, **spec: Any) -> Asking:
    run = RunSpec((SystemRef(builtin="identity"),), (dataset,), prompt=prompt, **spec)
    datasets = resolve_datasets(run, registry, NoUploads())
    return resolve_prompts(run, datasets)[dataset.label]


def problems(folder: Path, split: str) -> None:
    rows = [
        {"question": f"{split} problem {n}: what is {n} + {n}?", "answer": f"add\n#### {2 * n}"}
        for n in range(10)
    ]
    path = folder / "openai" / "gsm8k" / "main" / f"{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize(
    ("asked", "limit", "why"),
    [
        (None, 1024, ""),
        (1024, 1024, ""),
        (99, 99, "It is the benchmark's, but answers may have 99 tokens, there 1,024."),
    ],
)
def test_an_official_prompt_comes_with_the_limit_that_its_benchmark_has(
    asked: int | None, limit: int, why: str
) -> None:
    template = PromptRef(template="{question}", max_tokens=asked)
    prompt = asking_of(DatasetRef("mt-bench"), template).prompt
    assert prompt.max_tokens == limit
    assert prompt.status == ("differs" if why else "same")
    assert axis_of(prompt).why == why
    # A template of the user's own has the dataset's limit, or the one that is asked for.
    own = asking_of(DatasetRef("longbench", "hotpotqa"), PromptRef(template="{question}!")).prompt
    assert own.max_tokens == 128


@pytest.mark.parametrize("has_train", [True, False])
def test_few_shot_examples_come_from_another_split_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_train: bool
) -> None:
    monkeypatch.setenv("CBENCH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    problems(tmp_path, "test")
    if has_train:
        problems(tmp_path, "train")
    asking = asking_of(DatasetRef("gsm8k", "main"), PromptRef(few_shot=3))
    assert len(asking.shots) == 4
    split = "train" if has_train else "test"
    assert all(str(shot["context"]).startswith(split) for shot in asking.shots)
    assert asking.prompt.few_shot_source == ("split train" if has_train else SAME_ROWS)
    assert asking.prompt.few_shot_source in axis_of(asking.prompt).why
    again = asking_of(DatasetRef("gsm8k", "main"), PromptRef(few_shot=3))
    other = asking_of(DatasetRef("gsm8k", "main"), PromptRef(few_shot=3), seed=1)
    assert again == asking
    assert other.shots != asking.shots
    assert other.prompt.digest != asking.prompt.digest


def test_a_template_that_is_the_benchmarks_own_is_recognised() -> None:
    for template in ("{question}", "{context}\r\n"):
        prompt = ifeval_prompt(PromptRef(template=template))
        assert (prompt.status, axis_of(prompt).status) == ("same", "same")
    for ref in (PromptRef(template="{context}!"), PromptRef(system_prompt="Hi.")):
        assert ifeval_prompt(ref).status == "differs"
        assert axis_of(ifeval_prompt(ref)).why


def ifeval_prompt(ref: PromptRef) -> Prompt:
    run = RunSpec((SystemRef(builtin="identity"),), (DatasetRef("ifeval"),), prompt=ref)
    datasets = resolve_datasets(run, registry, NoUploads(), recorded={})
    return resolve_prompts(run, datasets)["ifeval"].prompt


def test_a_registered_dataset_has_the_prompt_for_any() -> None:
    own = Registry()
    own.register("dataset", "mine", lambda: iter([{"context": "c", "question": "q"}]))
    run = RunSpec((SystemRef(builtin="identity"),), (DatasetRef("mine"),))
    prompt = resolve_prompts(run, resolve_datasets(run, own, NoUploads()))["mine"].prompt
    assert prompt.told.startswith("Do what the question asks")


def test_a_template_names_no_withheld_field_in_any_spelling() -> None:
    rows = [{"context": "c"}, {"context": "c", "note": "n", "Best-Answer": "a"}]
    own = Registry()
    own.register("dataset", "mine", lambda: iter(rows))

    def resolve(template: str) -> Prompt:
        ref = PromptRef(template=template)
        run = RunSpec((SystemRef(builtin="identity"),), (DatasetRef("mine"),), prompt=ref)
        return resolve_prompts(run, resolve_datasets(run, own, NoUploads()))["mine"].prompt

    assert resolve("{context} {note}").origin == "file"
    for name in ("answer", "Answer", "bestAnswer", "BEST_ANSWER"):
        with pytest.raises(InvalidSpec, match=f'names "{name}", which is withheld'):
            resolve(f"{{context}} {{{name}}}")
    with pytest.raises(InvalidSpec, match='no field "notes"') as caught:
        resolve("{context} {notes}")
    assert "nswer" not in str(caught.value).replace("answer_format", "")
    with pytest.raises(InvalidSpec, match=r"Known: .*\bnote\b") as caught:
        resolve("{context} {zzzz}")
    assert "nswer" not in str(caught.value).replace("answer_format", "")


def test_few_shot_examples_have_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBENCH_DATA_DIR", str(FIXTURES))
    with pytest.raises(InvalidSpec, match="has 0 examples with an answer to draw from"):
        asking_of(DatasetRef("ifeval"), PromptRef(few_shot=1))


def test_a_memory_run_has_no_few_shot_examples() -> None:
    with pytest.raises(InvalidSpec, match="few-shot examples mean nothing in a memory run"):
        asking_of(DatasetRef("mini-memory"), PromptRef(few_shot=1), kind="memory")


# Who is told.


class Answers:
    name = "answers"
    version = "1"

    def process(self, example: dict[str, Any], instruction: str = "nothing") -> dict[str, Any]:
        return {**example, "response": instruction}


async def test_a_system_in_this_process_is_told_if_it_wants_to_be() -> None:
    caller = InProcessCaller(Answers())
    assert caller.takes_instruction
    work = Process({"context": "c"}, instruction="Say yes or no.")
    answer = await call_one(caller, Call("1", work), 10.0)
    await caller.close()
    assert answer.processed["response"] == "Say yes or no."


async def test_one_that_does_not_is_called_as_before() -> None:
    class Plain:
        name = "plain"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"keys": sorted(example)}

    caller = InProcessCaller(Plain())
    assert not caller.takes_instruction
    work = Process({"context": "c"}, asking=BARE, instruction="Say yes or no.")
    answer = await call_one(caller, Call("1", work), 10.0)
    await caller.close()
    assert answer.processed == {"keys": ["context"]}


def test_evaluate_tells_a_system_what_a_known_dataset_asks(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_examples": 1, "progress": False, "cache_dir": tmp_path}
    known = evaluate([Answers()], "mini-choice", **settings).rows[0].processed or {}
    assert known["response"].startswith("Choose the one right option.")
    given = [{"context": "c", "answer": "a"}]
    unknown = evaluate([Answers()], given, [AnswerQuality()], **settings).rows[0].processed or {}
    assert unknown["response"].startswith("Do what the question asks")
    assert evaluate([Answers()], "mini-choice", **settings).rows[0].reused


def test_a_memory_system_is_told_with_its_questions(tmp_path: Path) -> None:
    class Notes:
        name = "notes"

        def reset(self) -> None: ...

        def ingest(self, turns: list[Any]) -> None: ...

        def query(self, question: str, instruction: str) -> str:
            return instruction

    assert InProcessMemoryCaller(Notes()).takes_instruction
    spec = {
        "systems": [{"attached": "notes"}],
        "datasets": [{"name": "mini-memory", "max_examples": 1}],
        "kind": "memory",
    }
    with embedded(home=str(tmp_path)) as target, BenchClient(target) as client:
        with Attachment([], target, memory_systems=[Notes()]) as attachment:
            attachment.wait_attached(60)
            run_id = client.start(spec)
            for _ in client.watch(run_id):
                pass
        rows = list(client.rows(run_id, include_processed=True))
    said = {fields_from_proto(row.processed)["response"] for row in rows}
    assert len(said) == 1
    assert said.pop().startswith("Below is what is remembered of a conversation.")
