"""Declarations of a process: whether its options and scores can be believed."""

from typing import Any

from cbench_client._gen.cbench.v1 import evaluator_pb2, option_pb2
from cbench_client.errors import Unencodable
from cbench_client.messages import convert
from cbench_client.messages.options import (
    UNSET,
    DeclaredOption,
    UnsuitedOption,
    declared_options,
)

_LONGEST = 200


def options_are_valid(info: Any) -> bool:
    """Whether the options of a component have names of their own and defaults that they take.

    One that declares none is free to.
    """
    try:
        declared = declared_options(info)
    except Unencodable:
        return False
    if declared is None:
        return True
    names = declared.names
    return len(set(names)) == len(names) and all(map(_is_valid, declared.options))


def option_facts(info: Any) -> dict[str, Any]:
    """Return what is said of each option that a component declares, by its name."""
    return {each.name: _facts(each) for each in info.declared_options.options}


def _facts(option: option_pb2.OptionInfo) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "type": option_pb2.OptionType.Name(option.type).removeprefix("OPTION_TYPE_"),
        "required": option.required,
        "nullable": option.nullable,
        "choices": [convert.value_from_proto(choice) for choice in option.choices],
    }
    if option.description:
        facts["description"] = option.description
    if option.HasField("default_value"):
        facts["default"] = convert.value_from_proto(option.default_value)
    if option.HasField("minimum"):
        facts["minimum"] = option.minimum
    if option.HasField("maximum"):
        facts["maximum"] = option.maximum
    return facts


def _is_valid(option: DeclaredOption) -> bool:
    name = option.name
    if not 0 < len(name) <= _LONGEST or any(each in "=." or each.isspace() for each in name):
        return False
    if option.default is UNSET:
        return True
    try:
        option.taken(option.default)
    except UnsuitedOption:
        return False
    return not option.required


def directions_are_stated(info: Any) -> bool:
    """Whether every score says which way is better."""
    unstated = evaluator_pb2.SCORE_DIRECTION_UNSPECIFIED
    scores = info.scores if isinstance(info, evaluator_pb2.EvaluatorInfo) else ()
    return all(score.direction != unstated for score in scores)
