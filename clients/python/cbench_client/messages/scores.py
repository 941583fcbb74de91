"""Scores as they cross the wire."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbench_client._gen.cbench.v1 import evaluator_pb2
from cbench_client.messages import convert


@dataclass(frozen=True)
class Assessment:
    """Scores by name, and what led to them."""

    scores: dict[str, float]
    details: dict[str, Any]


@dataclass(frozen=True)
class AnnouncedScore:
    """A score that an evaluator says it gives."""

    name: str
    description: str = ""
    higher_is_better: bool = True
    worst: float | None = None


def announced_scores(info: evaluator_pb2.EvaluatorInfo) -> tuple[AnnouncedScore, ...]:
    """Return the scores that an evaluator announces.

    Whether larger is better is not read: servers that leave it unset would be
    taken to say no.
    """
    return tuple(
        AnnouncedScore(
            score.name, score.description, worst=score.worst if score.HasField("worst") else None
        )
        for score in info.scores
    )


def score_request(
    evaluator: str,
    original: Mapping[str, Any],
    processed: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> evaluator_pb2.ScoreRequest:
    """Encode a pair to score."""
    request = evaluator_pb2.ScoreRequest(evaluator=evaluator)
    convert.example_to_proto(original, request.original)
    convert.example_to_proto(processed, request.processed)
    convert.fields_to_proto(options or {}, request.options, "options.")
    return request


def assessment_of(response: evaluator_pb2.ScoreResponse) -> Assessment:
    """Decode scores; the explanation joins the details."""
    details = convert.fields_from_proto(response.details, "details.")
    if response.explanation:
        details.setdefault("explanation", response.explanation)
    return Assessment({name: response.scores[name] for name in sorted(response.scores)}, details)
