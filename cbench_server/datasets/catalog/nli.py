"""Natural language inference: does the text support a claim, contradict it, or neither?"""

import itertools
from collections.abc import Iterator

from cbench_server.datasets.catalog.fields import as_index
from cbench_server.datasets.catalog.scrolls import VALIDATION, scrolls_part, split_query
from cbench_server.datasets.hub.sources import Access, Part, Row, each
from cbench_server.datasets.protocol import DatasetProtocol, differs, uses
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_LEAD = "Does the contract entail, contradict, or not mention"


def _contract_nli(row: Row, index: int) -> Example:
    hypothesis, contract = split_query(row["input"])
    asked = f"the following statement?\n\n{hypothesis}" if hypothesis else "the hypothesis?"
    return {
        "id": row["id"],
        "context": contract,
        "question": f"{_LEAD} {asked}",
        "answer": row["output"],
    }


CONTRACT_NLI = hub_dataset(
    "contract-nli",
    scrolls_part("contract_nli"),
    each(_contract_nli),
    default_config="contract_nli",
    family="nli",
    protocol=DatasetProtocol(
        follows="tau-nlp/scrolls, metrics/exact_match.py",
        evaluators=uses("answer-quality", "nli-label-match"),
        primary_score="exact_match",
        data=VALIDATION,
    ),
    description="Non-disclosure agreements and statements about them.",
    size=1037,
    licence="CC BY 4.0",
    citation="Koreeda & Manning 2021, arXiv:2110.01799; Shaham et al. 2022, arXiv:2201.03533",
)

# The card says CONTRADICT where copies of the files say REFUTE.
_SCIFACT_LABELS = {"SUPPORT": "SUPPORTS", "CONTRADICT": "REFUTES", "REFUTE": "REFUTES"}
_CORPUS = Part(
    repository="allenai/scifact", config="corpus", split="train", revision="refs/convert/parquet"
)


def _scifact(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    abstracts: dict[int, tuple[str, list[str]]] = {}
    # A claim has a row for each piece of evidence; they follow each other.
    for claim_id, group in itertools.groupby(rows, key=lambda row: row["id"]):
        evidence = list(group)
        if not abstracts:
            abstracts = {
                int(row["doc_id"]): (
                    str(row.get("title") or ""),
                    [*map(str.strip, row["abstract"])],
                )
                for row in access.rows(_CORPUS)
            }
        cited = [int(doc_id) for doc_id in evidence[0]["cited_doc_ids"]]
        texts = [_titled(*abstracts[doc_id]) for doc_id in cited if doc_id in abstracts]
        if texts:
            yield {
                "id": claim_id,
                "context": "\n\n".join(texts),
                "question": evidence[0]["claim"],
                "answer": _scifact_label(evidence, cited),
                "evidence": [*dict.fromkeys(_rationales(evidence, abstracts))],
            }


def _titled(title: str, sentences: list[str]) -> str:
    text = " ".join(sentences)
    return f"{title}\n{text}" if title else text


def _rationales(evidence: list[Row], abstracts: dict[int, tuple[str, list[str]]]) -> Iterator[str]:
    for row in evidence:
        _, sentences = abstracts.get(as_index(row["evidence_doc_id"]), ("", []))
        for number in row.get("evidence_sentences") or []:
            if 0 <= int(number) < len(sentences):
                yield sentences[int(number)]


def _scifact_label(evidence: list[Row], cited: list[int]) -> str:
    """Return the label of the first cited document that has evidence."""
    labels = {as_index(row["evidence_doc_id"]): row["evidence_label"] for row in evidence}
    for doc_id in cited:
        if label := labels.get(doc_id):
            return _SCIFACT_LABELS.get(label, str(label))
    return "NOT ENOUGH INFO"


SCIFACT = hub_dataset(
    "scifact",
    Part(
        repository="allenai/scifact",
        config="claims",
        split="validation",
        revision="refs/convert/parquet",
    ),
    _scifact,
    companions=(_CORPUS,),
    default_config="claims",
    family="nli",
    protocol=DatasetProtocol(
        follows="allenai/scifact, doc/evaluation.md",
        withheld=("answer", "evidence"),
        extraction="The one of three labels that the response settles on.",
        evaluators=uses("answer-quality", "nli-label-match", "evidence-recall"),
        primary_score="nli_accuracy",
        data=differs("The cited abstracts are given; the task has to retrieve them."),
        metric=differs("Label accuracy; the paper has F1 of abstracts and sentences."),
    ),
    description="Scientific claims and the abstracts they cite.",
    size=300,
    licence="CC BY 4.0, abstracts ODC-By 1.0",
    citation="Wadden et al. 2020, arXiv:2004.14974",
)

RECORDS = (CONTRACT_NLI, SCIFACT)
