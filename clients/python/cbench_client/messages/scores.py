"""Scores as they cross the wire."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbench_client._gen.cbench.v1 import evaluator_pb2
from cbench_client.errors import Unreachable
from cbench_client.messages import convert

_OUR_SDKS = ("cbench-python/", "cbench-node/", "cbench-go/", "cbench-rust/", "cbench-server/")


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


def announced_scores(info: evaluator_pb2.EvaluatorInfo, sdk: str) -> tuple[AnnouncedScore, ...]:
    """Return the scores that an evaluator announces; raise Unreachable if one has no direction.

    `sdk` is what serves it. Those of this project have always set
    `higher_is_better`; where others leave it out, nobody knows.
    """
    return tuple(
        AnnouncedScore(
            score.name,
            score.description,
            _is_higher_better(info.name, score, sdk),
            worst=score.worst if score.HasField("worst") else None,
        )
        for score in info.scores
    )


def _is_higher_better(evaluator: str, score: evaluator_pb2.ScoreInfo, sdk: str) -> bool:
    if score.direction == evaluator_pb2.SCORE_DIRECTION_HIGHER_IS_BETTER:
        return True
    if score.direction == evaluator_pb2.SCORE_DIRECTION_LOWER_IS_BETTER:
        return False
    if sdk.startswith(_OUR_SDKS):
        return score.higher_is_better
    raise Unreachable(
        f'evaluator "{evaluator}" does not say whether larger values of its score "{score.name}" '
        "are better. Set ScoreInfo.direction to SCORE_DIRECTION_HIGHER_IS_BETTER or "
        "SCORE_DIRECTION_LOWER_IS_BETTER where it is served."
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
