"""Summarisation: a long text, an instruction, and a summary by a person."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cbench_server.datasets.catalog.fields import records, references
from cbench_server.datasets.catalog.scrolls import VALIDATION, scrolls_part, split_query
from cbench_server.datasets.hub.sources import Access, Mapper, Part, Row, each
from cbench_server.datasets.protocol import (
    SAME,
    Aggregation,
    Axis,
    DatasetProtocol,
    differs,
    use,
    uses,
)
from cbench_server.datasets.record import DatasetRecord, hub_dataset
from cbench_server.spec import EvaluatorRef
from cbench_server.types import Example


def _summary(text: str, summary: str, question: str) -> Callable[[Row, int], Example]:
    """Map rows of which the named columns hold the text and its summary."""

    def make(row: Row, index: int) -> Example:
        return {
            "id": index if row.get("id") is None else row["id"],
            "context": row[text],
            "question": question,
            "answer": row[summary],
        }

    return make


_SCROLLS = Aggregation("geometric-mean", ("rouge_1_f1", "rouge_2_f1", "rouge_l_f1"))
_RESAMPLED = differs("The mean of the rows; the script has the middle of resampled means.")


def _protocol(
    *,
    follows: str,
    data: Axis = SAME,
    extraction: str = "The whole response is the summary.",
    rouge: Mapping[str, Any] | None = None,
) -> DatasetProtocol:
    """Describe a dataset of summaries: SCROLLS' way, or by `rouge` with settings."""
    evaluators = (
        *uses("answer-quality", "summarization-quality"),
        EvaluatorRef("rouge", options=dict(rouge or {})),
    )
    return DatasetProtocol(
        follows=follows,
        withheld=("answer", "answers"),
        extraction=extraction,
        evaluators=evaluators,
        primary_score="rouge_l_f1",
        aggregate=_SCROLLS if rouge is None else Aggregation(),
        data=data,
        aggregation=SAME if rouge is None else _RESAMPLED,
    )


def _record(
    name: str, part: Part, mapping: Mapper, protocol: DatasetProtocol, **about: Any
) -> DatasetRecord:
    return hub_dataset(
        name,
        part,
        mapping,
        family="summarization",
        default_config=part.config,
        protocol=protocol,
        **about,
    )


MULTI_NEWS = _record(
    "multi-news",
    Part(repository="alexfabbri/multi_news", revision="refs/convert/parquet"),
    each(_summary("document", "summary", "Summarize these news articles.")),
    _protocol(
        follows="google-research/pegasus, pegasus/eval/text_eval.py (multi_news)",
        rouge={"use_stemmer": True},
    ),
    description="Several news articles on one event, separated by |||||.",
    size=5622,
    licence="non-commercial research",
    citation="Fabbri et al. 2019, arXiv:1906.01749",
)


def _dialogsum(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    # The summaries of a dialogue follow each other, `test_0_1` to `test_0_3`.
    for name, group in itertools.groupby(rows, key=lambda row: row["id"].rpartition("_")[0]):
        said = [*group]
        yield {
            "id": name or said[0]["id"],
            "context": said[0]["dialogue"],
            "question": "Summarize this dialogue.",
            **references(row["summary"] for row in said),
        }


DIALOGSUM = _record(
    "dialogsum",
    Part(repository="knkarthick/dialogsum"),
    _dialogsum,
    _protocol(
        follows="cylnlp/dialogsum, Baseline/bart_train.py, the mean of its three references",
        rouge={"use_stemmer": True, "reference": "mean"},
    ),
    description="Everyday dialogues; three people summarised each.",
    size=500,
    licence="CC BY-NC-SA 4.0",
    citation="Chen et al. 2021, arXiv:2105.06762",
)


def _qmsum(row: Row, index: int) -> Example:
    query, transcript = split_query(row["input"])
    return {
        "id": row["id"],
        "context": transcript,
        "question": query or "Summarize this meeting transcript.",
        "answer": row["output"],
    }


QMSUM = _record(
    "qmsum",
    scrolls_part("qmsum"),
    each(_qmsum),
    _protocol(follows="tau-nlp/scrolls, metrics/rouge.py", data=VALIDATION),
    description="Meeting transcripts, to be summarised with regard to a question.",
    size=272,
    licence="MIT",
    citation="Zhong et al. 2021, arXiv:2104.05938; Shaham et al. 2022, arXiv:2201.03533",
)

SUMMSCREENFD = _record(
    "summscreenfd",
    scrolls_part("summ_screen_fd"),
    each(_summary("input", "output", "Summarize this TV episode transcript.")),
    _protocol(follows="tau-nlp/scrolls, metrics/rouge.py", data=VALIDATION),
    description="Transcripts of TV episodes with their recaps.",
    size=338,
    licence="see the source",
    citation="Chen et al. 2022, arXiv:2104.07091; Shaham et al. 2022, arXiv:2201.03533",
)


def _meetingbank(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    if access.config == "qa":
        for row in rows:
            for number, pair in enumerate(records(row["QA_pairs"])):
                yield {
                    "id": f"{row['idx']}_{number}",
                    "context": row["prompt"],
                    "question": pair["question"],
                    "answer": pair["answer"],
                }
        return
    asked = "Summarize this meeting transcript."
    yield from each(_summary("transcript", "summary", asked))(rows, access)


def _meetingbank_protocol(config: str) -> DatasetProtocol:
    if config == "qa":
        return DatasetProtocol(
            follows="microsoft/LLMLingua, experiments/llmlingua2/evaluation/metrics.py",
            extraction="The first line of the response has to contain the answer.",
            evaluators=use("subspan-em", skip_empty=True),
            primary_score="subspan_em",
        )
    return _protocol(
        follows="microsoft/LLMLingua, experiments/llmlingua2/evaluation/metrics.py",
        data=differs("The minutes are the references; LLMLingua-2 has summaries by GPT-4."),
        extraction="The first line of the response is the summary.",
        rouge={"first_line": True},
    )


MEETINGBANK = hub_dataset(
    "meetingbank",
    {
        "": (Part(repository="huuuyeah/meetingbank"),),
        "qa": (Part(repository="microsoft/MeetingBank-QA-Summary"),),
    },
    _meetingbank,
    family="summarization",
    protocol=_meetingbank_protocol,
    description="City council meetings with their minutes; `qa` has questions on them.",
    size=862,
    licence="CC BY-NC-SA 4.0",
    citation="Hu et al. 2023, arXiv:2305.17529; Pan et al. 2024, arXiv:2403.12968",
)

GOVREPORT = _record(
    "govreport",
    Part(repository="ccdv/govreport-summarization"),
    each(_summary("report", "summary", "Summarize this government report.")),
    _protocol(
        follows="tau-nlp/scrolls, metrics/rouge.py",
        data=differs("The test split of the full set; SCROLLS has splits of its own."),
    ),
    description="Long reports of US government agencies with their summaries.",
    size=973,
    licence="see the source",
    citation="Huang et al. 2021, arXiv:2104.02112",
)

RECORDS = (MULTI_NEWS, DIALOGSUM, QMSUM, SUMMSCREENFD, MEETINGBANK, GOVREPORT)
