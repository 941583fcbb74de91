"""Evidence recall: what survives, what was retrieved, and what is no evidence."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.datasets import RECORDS
from cbench_server.evaluators import EvidenceRecall

_FIXTURES = Path(__file__).parents[1] / "datasets/fixtures"
_SENTENCES = ["Ada was born in Tarn.", "Tarn lies on the Orne, at 3.5 km."]


def test_the_share_that_survives_counts_and_the_rest_is_named() -> None:
    said = EvidenceRecall().assess(
        {"evidence": _SENTENCES}, {"context": "ADA was born -- in Tarn; she painted."}
    )
    assert said.scores == {"evidence_recall": 0.5, "evidence_complete": 0.0}
    assert said.details == {"missing": [_SENTENCES[1]]}


@pytest.mark.parametrize(
    ("original", "processed"),
    [
        ({}, {"context": "x"}),
        ({"evidence": []}, {"context": "x"}),
        ({"evidence": ["..."]}, {"context": "x"}),
        ({"evidence": ["x"], "is_abstention": True}, {"context": "x"}),
        ({"evidence": ["x"]}, {"response": "x"}),
    ],
    ids=["none", "empty", "no words", "no answer", "no context"],
)
def test_without_evidence_or_a_context_there_is_no_score(
    original: dict[str, object], processed: dict[str, object]
) -> None:
    assert EvidenceRecall().score(original, processed) == {}
    if "context" in processed:
        assert not EvidenceRecall().applies(original)


def test_recall_at_k_counts_the_first_passages() -> None:
    retrieved = ["Nothing.", _SENTENCES[1], *["Nothing."] * 5, _SENTENCES[0]]
    scores = EvidenceRecall().score({"evidence": _SENTENCES}, {"retrieved": retrieved})
    assert scores["evidence_recall_at_1"] == 0.0
    assert scores["evidence_recall_at_5"] == 0.5
    assert scores["evidence_recall_at_10"] == scores["evidence_recall"] == 1.0


@given(st.lists(st.sampled_from(["One two.", "Three four.", "Five 6.5 seven."]), min_size=1))
def test_a_lossless_change_of_form_keeps_everything(parts: list[str]) -> None:
    context = " ".join(parts)
    for form in (context, context.upper(), json.dumps([context]), context.replace(" ", "\n")):
        scores = EvidenceRecall().score({"evidence": parts}, {"context": form})
        assert scores["evidence_recall"] == 1.0


@pytest.mark.parametrize("name", ["hotpotqa", "musique", "nolima:needle_set", "niah", "passkey:kv"])
def test_the_context_of_a_dataset_holds_its_evidence(name: str) -> None:
    base, _, config = name.partition(":")
    record = next(record for record in RECORDS if record.name == base)
    options = {"data_dir": _FIXTURES} if record.hub else {}
    for example in record.examples(config, **options):
        scores = EvidenceRecall().score(example, {"context": example["context"]})
        assert scores == {
            "evidence_recall": 1.0,
            "evidence_complete": 1.0,
            "context_verbatim": 1.0,
        }
        assert EvidenceRecall().score(example, {"context": ""})["evidence_recall"] == 0.0


def test_what_is_handed_on_is_told_from_what_is_rewritten() -> None:
    said = "Ada was born in the old town of Tarn. Tarn lies on the Orne. Nobody knows more of it."
    original = {"context": said, "evidence": _SENTENCES}

    def share(left: str) -> float | None:
        return EvidenceRecall().score(original, {"context": left}).get("context_verbatim")

    assert share("TARN lies on the Orne -- Ada was born in the old town") == 1.0
    assert share("Ada born old town Tarn. Tarn on Orne. Nobody knows more.") == 0.0
    assert share("The painter comes from there. Tarn lies on the Orne.") == 0.5
    assert share("of Tarn") == 1.0
    assert share("") is None
    # A question of a memory run has an excerpt of the conversation, not all of it.
    asked = {**original, "turn_count": 3}
    assert "context_verbatim" not in EvidenceRecall().score(asked, {"context": "Other words."})
