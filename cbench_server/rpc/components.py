"""Components, as they describe themselves: systems, evaluators and their scores."""

from collections.abc import Mapping
from typing import Any

from cbench_client import errors as wire_errors
from cbench_client._gen.cbench.v1 import evaluator_pb2
from cbench_client.messages import convert as wire
from cbench_server.contract import info_of
from cbench_server.errors import Unencodable
from cbench_server.registry import Registry
from cbench_server.systems import is_shipped
from cbench_server.systems.caller import BUILTIN, INSTALLED, SystemDescription


def description_from_info(
    info: Any, location: str, sdk: str = "", name: str = ""
) -> SystemDescription:
    """Decode what a system says of itself; `name` renames it."""
    return SystemDescription(
        name=name or info.name,
        version=info.version,
        description=info.description,
        max_concurrency=info.max_concurrency if info.HasField("max_concurrency") else None,
        location=location,
        sdk=sdk,
    )


def location_of(registry: Registry, kind: str, name: str) -> str:
    """Say whether a system of the registry comes with cbench-server, or from somebody else."""
    name = registry.name_of(kind, name)
    return BUILTIN if is_shipped(name, registry.get(kind, name)) else INSTALLED


def evaluator_info(evaluator: Any, location: str = "builtin") -> evaluator_pb2.EvaluatorInfo:
    """Encode what an evaluator, or its class, says of itself."""
    said = info_of(evaluator)
    info = evaluator_pb2.EvaluatorInfo(
        name=evaluator.name,
        description=said.description,
        required_fields=said.required_fields,
        version=said.version,
        location=location,
    )
    for score in said.scores:
        info.scores.add(
            name=score.name,
            description=score.description,
            higher_is_better=score.higher_is_better,
            worst=score.worst,
            direction=evaluator_pb2.SCORE_DIRECTION_HIGHER_IS_BETTER
            if score.higher_is_better
            else evaluator_pb2.SCORE_DIRECTION_LOWER_IS_BETTER,
        )
    return info


def score_response(
    scores: Mapping[str, float], details: Mapping[str, Any]
) -> evaluator_pb2.ScoreResponse:
    """Encode the scores of one pair; the explanation is the details' own, where there is one."""
    response = evaluator_pb2.ScoreResponse(
        scores=dict(scores), explanation=str(details.get("explanation", ""))
    )
    try:
        wire.fields_to_proto(details, response.details)
    except wire_errors.Unencodable as error:
        raise Unencodable(f"the evaluator's details cannot be sent: {error}") from error
    return response
