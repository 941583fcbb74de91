"""Summarisation: a long text, an instruction, and a summary by a person."""

from collections.abc import Callable
from typing import Any

from cbench_server.datasets.catalog.scrolls import scrolls_part, split_query
from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.record import DatasetRecord, hub_dataset
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


def _record(
    name: str, part: Part, make: Callable[[Row, int], Example], **about: Any
) -> DatasetRecord:
    return hub_dataset(
        name,
        part,
        each(make),
        family="summarization",
        evaluators=("answer-quality", "summarization-quality"),
        primary_score="rouge_l_f1",
        default_config=part.config,
        **about,
    )


MULTI_NEWS = _record(
    "multi-news",
    Part(repository="alexfabbri/multi_news", revision="refs/convert/parquet"),
    _summary("document", "summary", "Summarize these news articles."),
    description="Several news articles on one event, separated by |||||.",
    size=5622,
    licence="non-commercial research",
    citation="Fabbri et al. 2019, arXiv:1906.01749",
)

DIALOGSUM = _record(
    "dialogsum",
    Part(repository="knkarthick/dialogsum"),
    _summary("dialogue", "summary", "Summarize this dialogue."),
    description="Everyday dialogues; three people summarised each.",
    size=1500,
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
    _qmsum,
    description="Meeting transcripts, to be summarised with regard to a question.",
    size=272,
    licence="MIT",
    citation="Zhong et al. 2021, arXiv:2104.05938; Shaham et al. 2022, arXiv:2201.03533",
)

SUMMSCREENFD = _record(
    "summscreenfd",
    scrolls_part("summ_screen_fd"),
    _summary("input", "output", "Summarize this TV episode transcript."),
    description="Transcripts of TV episodes with their recaps.",
    size=338,
    licence="see the source",
    citation="Chen et al. 2022, arXiv:2104.07091; Shaham et al. 2022, arXiv:2201.03533",
)

MEETINGBANK = _record(
    "meetingbank",
    Part(repository="huuuyeah/meetingbank"),
    _summary("transcript", "summary", "Summarize this meeting transcript."),
    description="City council meetings with their minutes.",
    size=862,
    licence="CC BY-NC-SA 4.0",
    citation="Hu et al. 2023, arXiv:2305.17529",
)

GOVREPORT = _record(
    "govreport",
    Part(repository="ccdv/govreport-summarization"),
    _summary("report", "summary", "Summarize this government report."),
    description="Long reports of US government agencies with their summaries.",
    size=973,
    licence="see the source",
    citation="Huang et al. 2021, arXiv:2104.02112",
)

RECORDS = (MULTI_NEWS, DIALOGSUM, QMSUM, SUMMSCREENFD, MEETINGBANK, GOVREPORT)
