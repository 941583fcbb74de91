"""Generated datasets: the same bytes for the same seed, the length asked for, findable evidence."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_server import evaluate
from cbench_server.daemon.embedded import embedded
from cbench_server.datasets import RECORDS, IdLedger, check_example
from cbench_server.datasets.generated.draws import Draws
from cbench_server.datasets.generated.fitting import fitted
from cbench_server.errors import BadDataset, NotFound
from cbench_server.evaluators import EVALUATORS
from cbench_server.registry import load_dataset, registry
from cbench_server.tokens import count_tokens
from cbench_server.types import Example
from tests.datasets.test_runs import cbench

__all__ = ["cbench"]

_GENERATED = {record.name: record for record in RECORDS if record.family == "generated"}
_NEEDS_ROWS = ("qa_1", "qa_2")
_RULER = [task for task in _GENERATED["ruler"].configs if task not in _NEEDS_ROWS]
_TASKS = [
    *(f"ruler:{task}" for task in _RULER),
    *("niah", "kv-retrieval", "multi-document"),
    *(f"passkey:{task}" for task in _GENERATED["passkey"].configs),
]

# The first 16 digits of the SHA-256 of two examples of 2,000 tokens with seed 7, as JSON.
_DIGESTS = {
    "ruler:niah_single_1": "4bfe966726603096",
    "ruler:niah_single_2": "8f285eb9a1ba358b",
    "ruler:niah_single_3": "eb20ff39cb2cde02",
    "ruler:niah_multikey_1": "178e78db4b5ec137",
    "ruler:niah_multikey_2": "e0437172f805f25b",
    "ruler:niah_multikey_3": "da8bb4b0ae826eb1",
    "ruler:niah_multivalue": "56d102e253b05527",
    "ruler:niah_multiquery": "8240784b7015846f",
    "ruler:vt": "63df65ddbe3b7964",
    "ruler:cwe": "3c880cf8fd25ab08",
    "ruler:fwe": "ff4bb941edb02edd",
    "niah": "026b9159571f738c",
    "kv-retrieval": "8b5be78a36bb68b0",
    "multi-document": "a47a16d2bbb37715",
    "passkey:passkey": "13a7bd366ccfc83b",
    "passkey:number_string": "df9ba7032b0b0502",
    "passkey:kv": "2fc9742f0a2b8875",
    "passkey:math_find": "cd6533bc8dcdabb3",
}


def _named(name: str, **parameters: Any) -> str:
    base, _, task = name.partition(":")
    given = ",".join(f"{key}={value}" for key, value in parameters.items())
    return f"{base}:{task},{given}" if task else f"{base}:{given}"


def _examples(name: str, **parameters: Any) -> list[dict[str, Any]]:
    return [*load_dataset(_named(name, **parameters))]


def _digest(name: str) -> str:
    examples = _examples(name, length=2000, count=2, seed=7)[:2]
    return hashlib.sha256(json.dumps(examples).encode()).hexdigest()[:16]


def test_the_families_are_there() -> None:
    assert _GENERATED.keys() == {"ruler", "niah", "kv-retrieval", "multi-document", "passkey"}
    assert len(_RULER) == 11
    for record in _GENERATED.values():
        assert set(record.evaluators) <= set(EVALUATORS)
        assert record.is_available()
        assert len(record.description) <= 90


@pytest.mark.parametrize("name", _TASKS)
def test_the_same_seed_gives_the_same_bytes_for_ever(name: str) -> None:
    assert _digest(name) == _DIGESTS[name]


def test_neither_hashing_nor_the_locale_makes_a_difference() -> None:
    program = (
        "import sys; from tests.datasets.test_generated import _TASKS, _digest;"
        "print(*map(_digest, _TASKS))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "", "PYTHONHASHSEED": "2", "LC_ALL": "C"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [_DIGESTS[name] for name in _TASKS]


@pytest.mark.parametrize("name", _TASKS)
@pytest.mark.parametrize("length", [8_000, 30_000])
def test_a_context_has_the_length_that_was_asked_for(name: str, length: int) -> None:
    for example in _examples(name, length=length, count=1):
        assert 0.98 * length <= count_tokens(example["context"]) <= length
        assert example["length"] == length


@pytest.mark.parametrize("name", [task for task in _TASKS if task != "multi-document"])
def test_a_hundred_thousand_tokens_and_more_are_made(name: str) -> None:
    (example, *_) = load_dataset(_named(name, length="128k", count=1), n=1)
    assert 0.98 * 128_000 <= count_tokens(example["context"]) <= 128_000
    assert all(text in example["context"] for text in (*example["answers"], *example["evidence"]))


@pytest.mark.parametrize("name", _TASKS)
def test_every_answer_and_its_evidence_are_in_the_context(name: str) -> None:
    seen = IdLedger()
    for position, example in enumerate(_examples(name, length="1k+3k", count=3, seed=5)):
        check_example(example, position, name, seen)
        context = example["context"]
        assert example["answers"]
        assert all(answer in context for answer in example["answers"])
        assert all(part in context for part in example["evidence"])
        assert example["task"] == (name.partition(":")[2] or name)
        assert example["question"]


@pytest.mark.parametrize("name", _TASKS)
def test_a_system_sees_no_outcome(name: str) -> None:
    record = _GENERATED[name.partition(":")[0]]
    (example, *_) = load_dataset(_named(name, length=1000, count=1), n=1)
    visible = set(example) - set(record.reference_fields)
    assert visible <= {"id", "task", "length", "context", "question"}


@pytest.mark.parametrize(
    "name",
    [
        *("ruler:niah_single_1", "ruler:niah_single_2", "ruler:niah_multikey_2", "niah"),
        *("kv-retrieval", "passkey:passkey", "passkey:number_string"),
    ],
)
def test_the_evidence_is_where_the_depth_says(name: str) -> None:
    for example in _examples(name, length=8000, depth="0+30+75+100", count=2):
        context, (needle,) = example["context"], example["evidence"]
        place = context.index(needle) * 100 / (len(context) - len(needle))
        assert abs(place - example["depth"]) < 3
        assert context.count(needle) == 1


def test_the_right_document_is_the_one_at_the_place() -> None:
    for example in _examples("multi-document", length=6000, depth="0+50+100", count=3):
        documents = example["context"].split("\n\nDocument ")
        (place,) = (n for n, text in enumerate(documents) if example["evidence"][0] in text)
        assert place == (len(documents) - 1) * example["depth"] // 100
        answers = sum(example["answer"].lower() in text.lower() for text in documents)
        assert answers == 1


def test_a_grid_has_every_depth_at_every_length() -> None:
    examples = _examples("niah", length="1k+2k", depth="0+50+100", count=2)
    cells = [(example["length"], example["depth"]) for example in examples]
    assert cells == [(n, d) for n in (1000, 2000) for d in (0, 50, 100) for _ in range(2)]
    assert len({example["id"] for example in examples}) == 12


def test_several_needles_are_several_answers() -> None:
    (values,) = _examples("ruler:niah_multivalue", length=2000, count=1)
    assert len(values["answers"]) == len(set(values["answers"])) == 4
    (queries,) = _examples("ruler:niah_multiquery", length=2000, count=1)
    keys = [needle.split(" of ")[1].split(" is ")[0] for needle in queries["evidence"]]
    assert all(key in queries["question"] for key in keys)
    (keyed,) = _examples("ruler:niah_multikey_1", length=2000, count=1)
    assert len(keyed["answers"]) == 1
    assert keyed["context"].count("Note for the register") == 4


def test_a_chain_of_variables_is_in_the_order_of_its_assignments() -> None:
    for example in _examples("ruler:vt", length=2000, count=5):
        places = [example["context"].index(step) for step in example["evidence"]]
        assert places == sorted(places)
        for (old, new), step in zip(
            pairwise(example["answers"]), example["evidence"][1:], strict=True
        ):
            assert step == f"VAR {new} = VAR {old}"


@pytest.mark.parametrize(("task", "count"), [("cwe", 10), ("fwe", 3)])
def test_the_frequent_words_are_the_most_frequent(task: str, count: int) -> None:
    for length in (1000, 6000):
        for example in _examples(f"ruler:{task}", length=length, count=2):
            words = [word for word in example["context"].split() if word.isalpha()]
            tally = {word: words.count(word) for word in set(words)}
            ranked = sorted(tally, key=lambda word: -tally[word])
            assert set(ranked[:count]) == set(example["answers"])
            assert tally[ranked[count - 1]] > tally[ranked[count]]


def test_a_number_is_found_by_its_size() -> None:
    for example in _examples("passkey:math_find", length=1000, count=20):
        numbers = sorted(json.loads(example["context"]))
        different, answer = sorted(set(numbers)), int(example["answer"])
        wanted = {
            "the largest": different[-1],
            "second largest": different[-2],
            "the smallest": different[0],
            "second smallest": different[1],
            "the median": numbers[(len(numbers) - 1) // 2],
        }
        (key,) = (key for key in wanted if f"{key}?" in example["question"])
        assert answer == wanted[key]


def test_other_seeds_and_numbers_give_other_examples() -> None:
    texts = {
        example["context"]
        for seed in (0, 1)
        for example in _examples("kv-retrieval", length=1000, count=3, depth=50, seed=seed)
    }
    assert len(texts) == 6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ruler:niah_single_9", 'has no config "niah_single_9"; it has: niah_single_1'),
        ("niah:deep", 'has no config "deep"; it has: none, only parameters'),
        ("niah:size=3", 'has no parameter "size"; it has: length, depth, count, seed'),
        ("niah:length=10", '"length=10" is not valid; each number is from 500 to 2,000,000'),
        ("niah:depth=101", '"depth=101" is not valid'),
        ("niah:count=0", '"count=0" is not valid'),
        ("niah:seed=x", '"seed=x" is not valid'),
    ],
)
def test_a_wrong_config_is_answered_with_what_it_may_be(name: str, message: str) -> None:
    with pytest.raises(NotFound, match=message):
        load_dataset(name)


def test_a_config_is_recorded_in_full() -> None:
    record = registry.dataset("ruler")
    assert record.config_of("") == "niah_single_1,length=4000,count=20,seed=0"
    assert record.config_of("vt,length=8k+16k") == "vt,length=8000+16000,count=20,seed=0"
    assert record.config_of(record.config_of("vt")) == record.config_of("vt")
    assert registry.dataset("niah").config_of("depth=50") == "length=4000,depth=50,count=1,seed=0"


def test_too_many_documents_are_refused() -> None:
    with pytest.raises(BadDataset, match="too few for 900,000 tokens"):
        _examples("multi-document", length="900k", count=1)


def _write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_questions_over_documents_come_from_a_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squad = [
        {
            "context": f"Town {n} lies on the river {n}{n}. " * 5,
            "question": f"Where does town {n} lie?",
            "answers": {"text": [f"river {n}{n}"] if n % 2 else []},
        }
        for n in range(10, 60)
    ]
    hotpot = [
        {
            "question": f"Who met {n}?",
            "answer": f"Person {n}",
            "context": {
                "title": [f"T{n}", f"U{n}"],
                "sentences": [[f"Person {n} met. ", "More."], ["Nothing here. " * 5]],
            },
            "supporting_facts": {"title": [f"T{n}"], "sent_id": [0]},
        }
        for n in range(10, 60)
    ]
    _write(tmp_path, "rajpurkar/squad_v2/default/validation.jsonl", squad)
    _write(tmp_path, "hotpotqa/hotpot_qa/distractor/validation.jsonl", hotpot)
    monkeypatch.setenv("CBENCH_DATA_DIR", str(tmp_path))
    for task in _NEEDS_ROWS:
        for example in _examples(f"ruler:{task}", length=2000, count=3):
            assert 0.95 * 2000 <= count_tokens(example["context"]) <= 2000
            assert all(part in example["context"] for part in example["evidence"])
            assert any(answer in example["context"] for answer in example["answers"])


@pytest.mark.parametrize("name", ["niah:", "ruler:niah_multikey_1,"])
def test_needles_are_hidden_in_a_text_of_the_users(name: str, tmp_path: Path) -> None:
    (tmp_path / "haystacks").mkdir()
    told = [f"Chapter {n} tells of the weather in town {n}." for n in range(400)]
    (tmp_path / "haystacks" / "novel.txt").write_text("\n".join(told))
    config = f"{name}length=2000,depth=50,count=2,haystack=novel"
    made = [*load_dataset(config, data_dir=str(tmp_path))]
    assert made == [*load_dataset(config, data_dir=str(tmp_path))]
    assert len(made) == 2
    for example in made:
        assert 1900 <= count_tokens(example["context"]) <= 2000
        assert example["evidence"][0] in example["context"]
        assert "tells of the weather" in example["context"]
    for wrong, said in (
        (f"{name}haystack=none", "none.txt cannot be read: No such file"),
        (f"{name}haystack=.novel", "the name of a file, without its folder"),
        ("ruler:vt,haystack=novel", "vt hides nothing in running text"),
        ("kv-retrieval:haystack=novel", "takes no haystack"),
    ):
        with pytest.raises((BadDataset, NotFound), match=said):
            [*load_dataset(wrong, data_dir=str(tmp_path))]
    with pytest.raises(BadDataset, match="say --data-dir DIR"):
        [*load_dataset(f"{name}haystack=novel")]
    with pytest.raises(NotFound, match="the name of a file, without its folder"):
        [*_GENERATED["niah"].examples("haystack=../novel", data_dir=str(tmp_path))]


def test_a_run_and_a_card_tell_the_digest_of_a_text_of_the_users(
    cbench: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    file = tmp_path / "haystacks" / "novel.txt"
    file.parent.mkdir()
    name = "niah:length=500,depth=50,count=1,haystack=novel"
    digests = set()
    for word in ("calm", "rough"):
        file.write_text("\n".join(f"In town {n} the sea was {word}." for n in range(200)))
        digest = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
        run = cbench(
            *("run", "--builtin", "identity", "--dataset", name, "--data-dir", tmp_path, "--json")
        )
        assert run.returncode == 0, run.stderr
        (described,) = json.loads(run.stdout)["config"]["datasets"]
        assert (described["haystack"], described["haystack_digest"]) == ("novel", digest)
        data = load_dataset(name, data_dir=str(tmp_path))
        result = evaluate([_Echo()], data, progress=False)
        assert result.config["datasets"][0]["haystack_digest"] == digest
        shown = cbench("datasets", "show", name, "--data-dir", tmp_path)
        assert f"Haystack:     novel, {digest}" in shown.stdout
        digests.add(digest)
    assert len(digests) == 2
    plain = cbench("datasets", "show", "niah:length=500")
    assert "\nHaystack:" not in plain.stdout


class _Echo:
    name = "echo"

    def process(self, example: Example) -> Example:
        return example


def test_draws_are_known_numbers() -> None:
    draws = Draws(1, "test")
    assert [draws.below(100) for _ in range(5)] == [99, 32, 46, 61, 70]
    assert draws.shuffled([1, 2, 3, 4, 5]) == [4, 5, 3, 1, 2]
    assert draws.sample("abcdef", 3) == ["f", "c", "b"]
    assert draws.uuid() == "7e2fdb10-bd60-4338-9ae0-9229c1399443"


@pytest.mark.parametrize("tokens", [1, 50, 333, 5_000])
def test_as_many_units_as_fit_are_taken(tokens: int) -> None:
    text = fitted(lambda count: "head " * 20 + "word " * count, tokens)
    assert count_tokens(text) <= max(tokens, 22)
    assert tokens < 22 or count_tokens(text) >= tokens * 0.97


def test_a_run_takes_the_parameters_in_its_config(tmp_path: Path) -> None:
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [{"name": "ruler", "config": "vt,length=1k,count=2"}],
    }
    with embedded(home=str(tmp_path)) as target, BenchClient(target) as client:
        run_id = client.start(spec)
        for _ in client.watch(run_id):
            pass
        rows = [*client.rows(run_id)]
    assert [row.example_id.text for row in rows] == ["vt-1000-0", "vt-1000-1"]
    assert {row.dataset for row in rows} == {"ruler:vt,length=1000,count=2,seed=0"}
    assert all(row.scores["answer_retained"] == 1.0 for row in rows)
