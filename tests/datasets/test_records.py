"""Every dataset of the model, from a mirror of hand-made rows in each source's own columns."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cbench_server.datasets import RECORDS, DatasetRecord, IdLedger, check_example
from cbench_server.datasets.config_sizes import CONFIG_SIZES
from cbench_server.errors import BadDataset, NotFound
from cbench_server.evaluators import EVALUATORS
from cbench_server.evaluators.longbench.metrics import JIEBA_TASKS
from cbench_server.registry import registry

_HERE = Path(__file__).parent
FIXTURES = _HERE / "fixtures"
GOLDEN = json.loads((_HERE / "golden.json").read_text(encoding="utf-8"))
HUB_RECORDS = [record for record in RECORDS if record.hub]
_BY_NAME = {record.name: record for record in RECORDS}

# The 42 names of the model, and the two of its memory benchmark.
NAMES = {
    "hotpotqa",
    "gsm8k",
    "bfcl",
    "apigen",
    "swebench",
    "swebench-verified",
    "swebench-lite",
    "natural-questions",
    "musique",
    "narrativeqa",
    "triviaqa",
    "frames",
    "quality",
    "qasper",
    "humaneval",
    "mbpp",
    "multi-news",
    "dialogsum",
    "qmsum",
    "summscreenfd",
    "meetingbank",
    "govreport",
    "contract-nli",
    "scifact",
    "mmlu",
    "mmlu-pro",
    "arc-challenge",
    "gpqa",
    "hellaswag",
    "winogrande",
    "truthfulqa",
    "drop",
    "math",
    "mgsm",
    "bbh",
    "ifeval",
    "alpaca-eval",
    "mt-bench",
    "longbench",
    "longbench-v2",
    "infinitebench",
    "nolima",
    "locomo",
    "longmemeval",
}

# What scores each dataset besides answer-quality, which is wired everywhere.
_WIRED = {
    "hotpotqa evidence-recall": "hotpotqa",
    "musique evidence-recall": "musique",
    "nq-open": "natural-questions",
    "evidence-recall": "qasper",
    "helm-f1 rouge": "narrativeqa",
    "triviaqa": "triviaqa",
    "truthfulqa": "truthfulqa",
    "drop": "drop",
    "summarization-quality rouge": "multi-news dialogsum qmsum summscreenfd meetingbank govreport",
    "multiple-choice": "mmlu mmlu-pro arc-challenge gpqa hellaswag winogrande quality longbench-v2",
    "code-execution": "humaneval mbpp",
    "ifeval": "ifeval",
    "math-equivalence": "math gsm8k mgsm",
    "nli-label-match": "contract-nli",
    "nli-label-match evidence-recall": "scifact",
    "bbh": "bbh",
    "longbench": "longbench",
    "infinitebench": "infinitebench",
    "string-match evidence-recall": "nolima",
    "bfcl": "bfcl apigen",
    "abstention locomo evidence-recall": "locomo",
    "abstention evidence-recall": "longmemeval",
}


def test_the_44_datasets_are_there() -> None:
    assert len(NAMES) == 44
    assert {record.name for record in HUB_RECORDS} == NAMES
    assert {name.partition(":")[0] for name in GOLDEN} == NAMES


@pytest.mark.parametrize("name", GOLDEN)
def test_rows_become_the_examples_specified(name: str) -> None:
    base, _, config = name.partition(":")
    examples = [*_BY_NAME[base].examples(config, data_dir=FIXTURES)]
    assert examples == GOLDEN[name]
    # Equality takes 1 for True and 1.0 for 1; a store and a wire do not.
    assert json.dumps(examples) == json.dumps(GOLDEN[name])


@pytest.mark.parametrize("record", HUB_RECORDS, ids=lambda record: record.name)
def test_a_record_is_complete_and_names_what_exists(record: DatasetRecord) -> None:
    assert record.description.endswith(".")
    assert len(record.description) <= 90
    assert record.family
    assert record.licence
    assert record.citation
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", record.source)
    assert not record.configs or record.default_config in (*record.configs, "")


@pytest.mark.parametrize("record", HUB_RECORDS, ids=lambda record: record.name)
def test_every_protocol_can_be_carried_out_and_says_what_differs(record: DatasetRecord) -> None:
    for protocol, configs in record.protocols():
        if any(config in JIEBA_TASKS for config in configs):
            pytest.importorskip("jieba")
        made = [EVALUATORS[ref.name](**ref.options) for ref in protocol.evaluators]
        scores = {info.name for evaluator in made for info in evaluator.score_infos}
        assert protocol.primary_score in scores | {"judge_score", ""}
        assert {*protocol.aggregate.scores} <= scores
        assert protocol.follows
        assert protocol.source
        assert protocol.extraction.endswith(".")
        assert {*protocol.withheld} <= {*record.reference_fields}
        assert not {*protocol.withheld} & {*protocol.shown}
        for axis in protocol.axes.values():
            assert axis.status == "same" or re.fullmatch(r"[A-Z][^\n]{10,120}\.", axis.why)
        if not protocol.primary_score:
            assert protocol.metric.status == "external"


def test_cards_admit_what_is_not_the_published_data() -> None:
    admits = {
        "narrativeqa": ("", "story"),
        "mbpp": ("sanitized",),
        "alpaca-eval": ("alpaca_eval",),
        "mt-bench": ("",),
        "swebench": ("",),
        "qmsum": ("qmsum",),
        "contract-nli": ("contract_nli",),
        "gpqa": ("gpqa_diamond",),
        "math": ("500",),
    }
    for name, configs in admits.items():
        for config in configs:
            assert _BY_NAME[name].protocol_of(config).data.status == "differs"
    for name, config in (("mbpp", "full"), ("alpaca-eval", "alpaca_eval_gpt4_baseline")):
        assert _BY_NAME[name].protocol_of(config).data.status == "same"


def test_the_metric_of_30_of_the_44_is_the_benchmarks_own() -> None:
    axes = [_BY_NAME[name].protocol_of().metric.status for name in NAMES]
    assert axes.count("same") >= 30


@pytest.mark.parametrize("record", HUB_RECORDS, ids=lambda record: record.name)
def test_what_a_record_says_of_itself_is_what_its_default_config_has(record: DatasetRecord) -> None:
    usual = record.protocol_of()
    assert record.evaluators == usual.evaluator_names
    assert record.primary_score == usual.primary_score
    assert record.official == (usual.metric.status == "same")
    assert record.split == usual.split


@pytest.mark.parametrize("record", HUB_RECORDS, ids=lambda record: record.name)
def test_a_dataset_is_wired_with_its_own_evaluators_only(record: DatasetRecord) -> None:
    extra = [
        name
        for names, datasets in _WIRED.items()
        if record.name in datasets.split()
        for name in names.split()
    ]
    assert record.evaluators == ("answer-quality", *extra)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_system_sees_what_the_protocol_shows_and_never_an_outcome(name: str) -> None:
    base, _, config = name.partition(":")
    record, ledger = _BY_NAME[base], IdLedger()
    protocol = record.protocol_of(config)
    for position, example in enumerate(record.examples(config, data_dir=FIXTURES)):
        check_example(example, position, record.name, ledger)
        seen = set(example) - set(record.reference_fields) - {"id"}
        # Where a row has no page to read, its question is the context.
        rest = {"question"} if name == "triviaqa" else set()
        assert seen == set(protocol.shown) or seen | rest == set(protocol.shown)
        assert example["context"].strip() != str(example.get("question")).strip()
        assert set(example) - seen - {"id"} <= set(protocol.withheld)


@pytest.mark.parametrize("name", ["ifeval", "mt-bench"])
def test_a_dataset_without_a_gold_answer_has_no_answer_field(name: str) -> None:
    for example in _BY_NAME[name].examples(data_dir=FIXTURES):
        assert not {"answer", "answers"} & set(example)


@pytest.mark.parametrize("name", ["gpqa", "nolima:needle_set"])
def test_what_is_shuffled_is_the_same_in_every_process(name: str) -> None:
    program = (
        "import json, sys; from cbench_server.registry import load_dataset;"
        "print(json.dumps([*load_dataset(sys.argv[1], data_dir=sys.argv[2])]))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program, name, str(FIXTURES)],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == GOLDEN[name]


def test_an_unknown_config_is_answered_with_the_known_ones() -> None:
    with pytest.raises(NotFound, match=r'"mgsm" has no config "xx"; it has: bn, de, en, es'):
        _BY_NAME["mgsm"].examples("xx", data_dir=FIXTURES)


def test_dashes_and_underscores_are_the_same_in_a_config() -> None:
    assert _BY_NAME["bbh"].config_of("web-of-lies") == "web_of_lies"
    assert _BY_NAME["longbench"].config_of("repobench_p") == "repobench-p"


def test_the_old_name_of_a_dataset_still_finds_it() -> None:
    assert registry.dataset("swe_agent_traces") is _BY_NAME["swebench-lite"]
    assert registry.name_of("dataset", "swe-agent-traces") == "swebench-lite"


def test_the_configs_are_those_of_the_sources() -> None:
    assert len(_BY_NAME["mmlu"].configs) == 58
    assert len(_BY_NAME["mgsm"].configs) == 11
    assert len(_BY_NAME["bbh"].configs) == 27
    assert len(_BY_NAME["longbench"].configs) == 21 + 13
    assert len(_BY_NAME["infinitebench"].configs) == 12


def test_the_oracle_setting_of_frames_says_where_its_articles_go(tmp_path: Path) -> None:
    rows = tmp_path / "google/frames-benchmark/default/test.jsonl"
    rows.parent.mkdir(parents=True)
    rows.write_bytes((FIXTURES / rows.relative_to(tmp_path)).read_bytes())
    frames = _BY_NAME["frames"]
    assert [*frames.examples(data_dir=tmp_path)] == GOLDEN["frames"]
    with pytest.raises(BadDataset, match=r"put them at DIR/google/frames-benchmark/pages\.jsonl"):
        [*frames.examples("oracle", data_dir=tmp_path)]


def test_sizes_of_configs_are_of_configs_and_add_up_to_what_is_published() -> None:
    by_name = {record.name: record for record in RECORDS}
    for name, sizes in CONFIG_SIZES.items():
        assert {*sizes} <= {*by_name[name].configs}
        assert all(by_name[name].size_of(config) for config in sizes)
    sums = {name: sum(CONFIG_SIZES[name].values()) for name in ("mmlu", "bbh", "longbench")}
    # 4,750 of LongBench and 3,668 of LongBench-E.
    assert sums == {"mmlu": by_name["mmlu"].size, "bbh": 6_511, "longbench": 4_750 + 3_668}
    assert sum(CONFIG_SIZES["math"].values()) - 500 == by_name["math"].size
    assert {*CONFIG_SIZES["longmemeval"].values()} == {by_name["longmemeval"].size}


def test_a_drawn_character_is_the_answer_of_a_needle_and_golds_that_of_one_without(
    tmp_path: Path,
) -> None:
    drawn = {
        "id": "0401",
        "needle": "{CHAR} lives next to the {1}.",
        "questions": {"onehop": "Who has been to {2}?"},
        "character_set": ["Yuki"],
        "tests": {"T01": {"input_args": ["Kiasma", "Helsinki"], "gold_answers": ["Nobody"]}},
    }
    tests = {"T01": {"input_args": [], "gold_answers": ["ox", "an ox"]}}
    named = {**drawn, "id": "0402", "needle": "There was an ox.", "tests": tests}
    home = tmp_path / "amodaresi" / "NoLiMa"
    for name, text in (
        ("needlesets/needle_set.json", json.dumps([drawn, named])),
        ("haystack/rand_shuffle/rand_book_1.txt", "The sea.\nA ship.\n"),
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    rows = [*_BY_NAME["nolima"].examples("needle_set", data_dir=tmp_path)]
    assert [row["answers"] for row in rows] == [["Yuki"], ["ox", "an ox"]]
