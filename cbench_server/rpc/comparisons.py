"""Comparisons and verdicts of gates, to and from their messages."""

from dataclasses import fields
from typing import Any

from cbench_client._gen.cbench.v1 import comparison_pb2, evaluator_pb2
from cbench_client.messages import convert as wire
from cbench_server.comparison.gate import Check, Verdict
from cbench_server.comparison.policies import Policy
from cbench_server.comparison.values import (
    Comparison,
    CostChange,
    Flip,
    Front,
    FrontPoint,
    GroupDifference,
    PairedDifference,
)
from cbench_server.metrics.stats.estimate import Estimate

_HIGHER = evaluator_pb2.SCORE_DIRECTION_HIGHER_IS_BETTER
_LOWER = evaluator_pb2.SCORE_DIRECTION_LOWER_IS_BETTER
_VERDICTS: dict[Verdict, Any] = {
    "passed": comparison_pb2.POLICY_VERDICT_PASSED,
    "failed": comparison_pb2.POLICY_VERDICT_FAILED,
    "not shown": comparison_pb2.POLICY_VERDICT_NOT_SHOWN,
    "not measured": comparison_pb2.POLICY_VERDICT_NOT_MEASURED,
}
_WORDS: dict[int, Verdict] = {number: verdict for verdict, number in _VERDICTS.items()}
# Those that are no plain value of the same name in the message.
_OWN = ("difference", "flips", "costs", "higher_is_better")
_PLAIN = tuple(each.name for each in fields(PairedDifference) if each.name not in _OWN)
_OPTIONAL = ("minimum_detectable", "more_examples")


def comparison_to_proto(found: Comparison) -> comparison_pb2.Comparison:
    """Encode a comparison."""
    return comparison_pb2.Comparison(
        systems=found.systems,
        pairs=[_pair_to_proto(pair) for pair in found.pairs],
        fronts=[
            comparison_pb2.Front(
                axis=front.axis,
                examples=front.examples,
                points=[
                    comparison_pb2.FrontPoint(
                        system=point.system,
                        quality=_estimate_to_proto(point.quality),
                        cost=_estimate_to_proto(point.cost),
                        layer=point.layer,
                        probability=point.probability,
                    )
                    for point in front.points
                ],
            )
            for front in found.fronts
        ],
        notes=found.notes,
        groups=[
            comparison_pb2.GroupDifference(
                field=each.field, group=each.group, pair=_pair_to_proto(each.pair)
            )
            for each in found.groups
        ],
    )


def comparison_from_proto(message: comparison_pb2.Comparison) -> Comparison:
    """Decode a comparison."""
    return Comparison(
        tuple(message.systems),
        tuple(map(_pair_from_proto, message.pairs)),
        tuple(
            Front(
                _axis(front),
                front.examples,
                tuple(
                    FrontPoint(
                        point.system,
                        _estimate(point.quality),
                        _estimate(point.cost),
                        point.layer,
                        point.probability,
                    )
                    for point in front.points
                ),
            )
            for front in message.fronts
        ),
        tuple(message.notes),
        tuple(
            GroupDifference(each.field, each.group, _pair_from_proto(each.pair))
            for each in message.groups
        ),
    )


def check_to_proto(check: Check, *, unsuited: bool) -> comparison_pb2.PolicyCheck:
    """Encode a policy and its verdict."""
    return comparison_pb2.PolicyCheck(
        policy=check.policy.text,
        verdict=_VERDICTS[check.verdict],
        measured=_estimate_to_proto(check.measured),
        explanation=check.explanation,
        unsuited=unsuited,
    )


def check_from_proto(message: comparison_pb2.PolicyCheck, policy: Policy) -> Check:
    """Decode the verdict on a policy."""
    return Check(policy, _WORDS[message.verdict], _estimate(message.measured), message.explanation)


def _pair_to_proto(pair: PairedDifference) -> comparison_pb2.PairedDifference:
    message = comparison_pb2.PairedDifference(
        **{name: getattr(pair, name) for name in _PLAIN},
        difference=_estimate_to_proto(pair.difference),
        direction=_HIGHER if pair.higher_is_better else _LOWER,
        claimed=pair.is_claimed,
        costs=[
            comparison_pb2.CostChange(
                axis=cost.axis,
                mean_a=cost.mean_a,
                mean_b=cost.mean_b,
                change=_estimate_to_proto(cost.change),
            )
            for cost in pair.costs
        ],
    )
    for flip in pair.flips:
        entry = message.flips.add(dataset=flip.dataset, score_a=flip.score_a, score_b=flip.score_b)
        wire.id_to_proto(flip.example_id, entry.example_id)
    return message


def _pair_from_proto(message: comparison_pb2.PairedDifference) -> PairedDifference:
    plain = {name: getattr(message, name) for name in _PLAIN}
    for name in _OPTIONAL:
        plain[name] = plain[name] if message.HasField(name) else None
    return PairedDifference(
        **plain,
        difference=_estimate(message.difference),
        flips=tuple(
            Flip(each.dataset, wire.id_from_proto(each.example_id), each.score_a, each.score_b)
            for each in message.flips
        ),
        costs=tuple(
            CostChange(_axis(each), each.mean_a, each.mean_b, _estimate(each.change))
            for each in message.costs
        ),
        higher_is_better=message.direction != _LOWER,
    )


def _estimate_to_proto(estimate: Estimate) -> comparison_pb2.Estimate:
    return comparison_pb2.Estimate(
        value=estimate.value,
        standard_error=estimate.stderr,
        low=estimate.low,
        high=estimate.high,
    )


def _estimate(message: comparison_pb2.Estimate) -> Estimate:
    return Estimate(
        *(
            getattr(message, name) if message.HasField(name) else None
            for name in ("value", "standard_error", "low", "high")
        )
    )


def _axis(message: Any) -> Any:
    return message.axis
