"""Prompts: every dataset has one, the same text is sent once, official ones are recognised."""

import json

import pytest

from cbench_server.datasets import RECORDS
from cbench_server.datasets.prompts.library import is_official, known_datasets, prompt_for
from cbench_server.datasets.prompts.prompt import STANDARD, Asking, Prompt, turn_message
from cbench_server.datasets.prompts.template import EXAMPLE_LINE, digest_of, parse, split_forms
from cbench_server.errors import InvalidSpec
from cbench_server.types import Example

from .test_records import FIXTURES, GOLDEN

# Their examples are what people would type; a word more would change what is measured.
BARE = {"ifeval", "alpaca-eval", "mt-bench", "mini-instructions", "mini-chat"}


def test_every_dataset_has_a_prompt_and_no_prompt_lacks_its_dataset() -> None:
    assert set(known_datasets()) == {record.name for record in RECORDS}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_each_config_says_what_is_asked_and_what_an_answer_looks_like(record) -> None:
    for config in record.configs or ("",):
        prompt = prompt_for(record.name, config)
        # Any other field would be a copy of what a system may compress, or a hint.
        assert {"context", "examples"} <= parse(prompt.template).fields <= STANDARD
        assert parse(prompt.example).fields >= {"answer", "context"}
        assert (prompt.max_tokens or 0) >= 32
        assert bool(prompt.told) == (record.name not in BARE)
        if record.name not in BARE:
            assert {"instruction", "answer_format"} <= parse(prompt.template).fields
            assert min(len(prompt.instruction), len(prompt.answer_format)) > 5


@pytest.mark.parametrize("dataset", ["longbench", "infinitebench"])
def test_tasks_of_one_dataset_have_prompts_of_their_own(dataset) -> None:
    record = next(record for record in RECORDS if record.name == dataset)
    tasks = {config.removesuffix("_e") for config in record.configs}
    assert len({prompt_for(dataset, task).told for task in tasks}) >= len(tasks) - 2


def test_a_config_with_parameters_or_of_the_even_split_has_its_tasks_prompt() -> None:
    assert prompt_for("ruler", "vt,length=8000") == prompt_for("ruler", "vt")
    assert prompt_for("ruler", "vt") != prompt_for("ruler", "cwe")
    assert prompt_for("longbench", "trec_e") == prompt_for("longbench", "trec")


def test_labels_are_named_where_there_are_labels() -> None:
    assert all(label in prompt_for("scifact").told for label in ("SUPPORTS", "REFUTES"))
    assert "Not mentioned" in prompt_for("contract-nli").told


def _asked(prompt: Prompt, original: Example, **processed: str) -> str:
    messages = Asking(prompt).messages(original, {**original, **processed} if processed else None)
    return "\n".join(message["content"] for message in messages)


@pytest.mark.parametrize("template", ["{question}\n{choices}", "{context}\n{choices}", "{choices}"])
def test_no_template_brings_back_what_was_cut(template) -> None:
    context = "Which one is red?\n\nA) the apple  B) the sea"
    example = {
        "context": context,
        "question": "Which one is red?",
        "choices": ["the apple", "the sea"],
    }
    prompt = Prompt(template=template)
    assert _asked(prompt, example).count("the apple") == 1
    assert _asked(prompt, example, context="red? A)").strip() == "red? A)"
    alone = {"context": "How many is two and two?"}
    if template != "{choices}":
        assert _asked(prompt, alone).strip() == alone["context"]


@pytest.mark.parametrize("dataset", ["gsm8k", "humaneval", "bbh", "ifeval", "frames", "a-file"])
def test_a_text_that_is_context_and_question_is_sent_once(dataset) -> None:
    text = "A train leaves at nine and arrives at noon. How long does it take?"
    example = {"context": text, "question": text}
    assert _asked(prompt_for(dataset), example).count(text) == 1
    assert _asked(prompt_for(dataset), {"context": text}) == _asked(prompt_for(dataset), example)


@pytest.mark.parametrize("dataset", ["gsm8k", "mmlu", "a-file"])
@pytest.mark.parametrize("template", ["", "{question}", "Q: {question}", "{context} {question}"])
def test_a_reader_never_sees_the_uncompressed_copy_of_what_was_compressed(
    dataset, template
) -> None:
    question = "Which planet has the most moons?"
    context = question if dataset == "gsm8k" else f"{question}\n\nA) Mars  B) Saturn"
    prompt = prompt_for(dataset)
    if template:
        prompt = Prompt(template=template)
    asked = _asked(prompt, {"context": context, "question": question}, context="Which planet")
    assert question not in asked
    assert asked.count("Which planet") == 1


@pytest.mark.parametrize("name", GOLDEN)
def test_what_an_example_of_the_hub_asks_is_asked(name) -> None:
    base, _, config = name.partition(":")
    record = next(record for record in RECORDS if record.name == base)
    prompt = prompt_for(base, config or record.default_config)
    for example in record.examples(config, data_dir=FIXTURES):
        visible = {
            key: value for key, value in example.items() if key not in record.reference_fields
        }
        question = str(visible.get("question", ""))
        # A request for a summary is the same on all rows, and the instruction says it.
        if "turns" not in visible and not question.startswith("Summarize"):
            assert question in _asked(prompt, visible)


def test_a_question_about_a_text_is_the_originals() -> None:
    original = {"context": "Rex is a dog. Tom is a cat.", "question": "What is Rex?"}
    asked = _asked(prompt_for("mini-qa"), original, context="Rex is a dog.", question="changed")
    assert "Text:\nRex is a dog.\n\nQuestion: What is Rex?" in asked
    assert "cat" not in asked


def test_a_field_that_repeats_the_context_is_no_way_around_compression() -> None:
    original = {"context": "one two three", "document": "one two three", "question": "?"}
    prompt = Prompt(template="{document}\n{question}")
    assert _asked(prompt, original, context="one") == "one\n?"


def test_a_question_that_holds_the_whole_context_keeps_only_the_rest() -> None:
    task = "Write a function that adds two numbers."
    original = {"context": task, "question": f"{task}\n\nassert add(1, 2) == 3"}
    prompt = prompt_for("mbpp")
    assert _asked(prompt, original).count(task) == 1
    cut = _asked(prompt, original, context="Write a function")
    assert "adds two numbers" not in cut
    assert "assert add(1, 2) == 3" in cut
    alone = _asked(Prompt(template="{question}"), original, context="Write")
    assert alone == "Write\n\nassert add(1, 2) == 3"


def test_few_shot_examples_are_never_the_example_itself() -> None:
    rows = [{"context": f"{n} + {n}", "question": f"{n} + {n}", "answer": 2 * n} for n in range(4)]
    base = prompt_for("gsm8k")
    prompt = Prompt(template=base.template, example=base.example, few_shot=2)
    for row in rows:
        asking = Asking(prompt, tuple(rows))
        text = asking.messages({"context": row["context"], "question": row["question"]})[-1]
        assert text["content"].count(row["context"]) == 1
        assert text["content"].count("Answer: ") == 2


def test_the_digest_changes_with_all_that_a_model_is_told() -> None:
    base = Prompt(template="{context}")
    others = [
        Prompt(template="{context} "),
        Prompt(template="{context}", instruction="i"),
        Prompt(template="{context}", answer_format="a"),
        Prompt(template="{context}", system_prompt="s"),
        Prompt(template="{context}", few_shot=1),
        Prompt(template="{context}", max_tokens=1),
        Prompt(template="{context}", stop=("\n",)),
    ]
    assert len({prompt.digest for prompt in (base, *others)}) == len(others) + 1
    assert base.digest == Prompt(template="{context}", status="same").digest


def test_turns_are_text_with_their_speakers_and_times() -> None:
    turn = {"role": "user", "content": "Hi", "speaker": "Ann", "time": "2023-01-02", "session": "1"}
    assert turn_message(turn) == {"role": "user", "content": "[2023-01-02] Ann: Hi"}


def test_a_question_that_no_turn_asks_is_asked_after_them() -> None:
    turns = [{"role": "user", "content": "I like tea.", "session": "1"}]
    example = {"turns": turns, "context": "user: I like tea.", "question": "What do I like?"}
    messages = Asking(prompt_for("locomo")).messages(example)
    assert messages[-1] == {"role": "user", "content": "What do I like?"}
    assert all(set(message) == {"role", "content"} for message in messages)
    assert prompt_for("locomo").instruction in messages[0]["content"]


# Templates.


def test_a_template_has_fields_and_braces() -> None:
    assert parse('{{"q": "{question}"}}').render({"question": "{x}"}) == '{"q": "{x}"}'
    assert parse("{{{a}}}").render({"a": "1"}) == "{1}"


@pytest.mark.parametrize("bad", ["{a.b}", "{a[0]}", "{a!r}", "{a:>10}", "{}", "{", "}", "{0}"])
def test_what_is_not_a_field_is_refused_with_its_line(bad) -> None:
    with pytest.raises(InvalidSpec, match=r"line 2 of the prompt template"):
        parse(f"first\nsecond {bad}")


def test_a_line_without_values_is_left_out_with_its_gap() -> None:
    template = parse("A\n\nB: {b}\n\nC: {c}\n\n{d}")
    assert template.render({"c": "1"}) == "A\n\nC: 1"
    assert template.render({"b": "1", "c": "2", "d": "3"}) == "A\n\nB: 1\n\nC: 2\n\n3"


def test_gaps_of_values_and_of_the_template_stay() -> None:
    assert parse("A\n\n\n{b}").render({"b": "1\n\n\n2"}) == "A\n\n\n1\n\n\n2"


def test_the_form_of_an_example_follows_its_line() -> None:
    assert split_forms(f"a\n{EXAMPLE_LINE}\nb\n") == ("a", "b")
    assert split_forms(f"a\r\n{EXAMPLE_LINE} \r\nb\r\n\r\nc") == ("a", "b\n\nc")
    assert split_forms("a\r\n") == ("a", "")
    for nothing in ("", "\n", "\n \n"):
        with pytest.raises(InvalidSpec, match="nothing after"):
            split_forms(f"a\n{EXAMPLE_LINE}{nothing}")


def test_line_ends_and_other_names_of_the_question_do_not_change_a_digest() -> None:
    assert digest_of("{context}\r\n{input}\r\n") == digest_of("{context}\n{question}")
    assert digest_of("{context}") != digest_of("{question}")


def test_prompts_that_add_nothing_are_the_official_ones_where_the_example_is_the_prompt() -> None:
    assert is_official("ifeval", "", prompt_for("ifeval").template)
    assert is_official("ifeval", "", "{context}")
    assert not is_official("gsm8k", "main", "{context}")


def test_our_wordings_are_not_the_official_ones() -> None:
    for record in RECORDS:
        for config in record.configs or ("",):
            is_bare = record.name in BARE
            official = is_official(record.name, config, prompt_for(record.name, config).template)
            assert is_bare or not official


def test_values_that_are_not_text_are_rendered() -> None:
    example = {"context": "go", "tools": [{"name": "f"}], "choices": ["x", "y"], "n": 3}
    asked = _asked(Prompt(template="{tools}|{choices}|{n}|{none}"), example)
    tools, choices, number, nothing = asked.split("|")
    assert json.loads(tools) == [{"name": "f"}]
    assert (choices, number, nothing) == ("A) x\nB) y", "3", "")


@pytest.mark.parametrize("name", [record.name for record in RECORDS if record.embedded])
def test_every_embedded_example_is_sent_whole_and_once(name) -> None:
    record = next(record for record in RECORDS if record.name == name)
    prompt = prompt_for(name)
    for example in record.examples():
        visible = {
            key: value for key, value in example.items() if key not in record.reference_fields
        }
        text = _asked(prompt, visible)
        if "turns" in visible:
            assert all(text.count(turn["content"]) >= 1 for turn in visible["turns"])
            continue
        assert text.count(visible["context"]) == 1
        assert text.count(str(visible.get("question", "")).strip()) >= (name != "mini-summaries")
        assert prompt.told == "" or prompt.answer_format in text
