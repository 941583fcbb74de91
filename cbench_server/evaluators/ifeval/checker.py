"""The IFEval checker: each instruction of a row by the table's rule and by the paper's."""

import re
from collections.abc import Callable

from cbench_server.evaluators.ifeval.official_rules import OFFICIAL_RULES, Rule
from cbench_server.evaluators.ifeval.parameters import Parameters, parameters_of
from cbench_server.evaluators.ifeval.table_rules import TABLE_RULES
from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo
from cbench_server.types import Assessment, Example, Placement

# The paper's name for what the table calls number_bullet_points.
_OFFICIAL_NAMES = {
    "detectable_format:number_bullet_points": "detectable_format:number_bullet_lists"
}

_KNOWN = TABLE_RULES.keys() | OFFICIAL_RULES.keys()

# What a parameter of the wrong kind, or a keyword that is not a regular expression, may raise.
_UNCHECKABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TimeoutError,
    TypeError,
    ValueError,
    re.error,
)


class IFEvalChecker(ExplainingEvaluator):
    """Gives two scores by the table of 19 instructions, and four by the rules of the paper."""

    name = "ifeval"
    version = "2"
    description = "Which of the row's instructions the response follows, as IFEval checks them."
    # Half a second of imports, then milliseconds for every language detection.
    placement: Placement = "worker"
    required_fields = ("instruction_id_list",)
    score_infos = (
        ScoreInfo("ifeval_strict", "1.0 if every instruction passes the table's check."),
        ScoreInfo("ifeval_loose", "Share of the instructions that pass the table's check."),
        ScoreInfo("ifeval_prompt_strict", "1.0 if every instruction is followed (paper)."),
        ScoreInfo("ifeval_prompt_loose", "The same for the best of eight readings (paper)."),
        ScoreInfo("ifeval_inst_strict", "Share of the instructions followed (paper)."),
        ScoreInfo("ifeval_inst_loose", "The same for the best of eight readings (paper)."),
    )

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score the response; details name the instructions that failed, and count the rest."""
        instructions = original.get("instruction_id_list")
        if not isinstance(instructions, list | tuple):
            return Assessment({})
        text = self.response(processed)
        return check([str(one) for one in instructions], original.get("kwargs"), text)


def check(instructions: list[str], kwargs: object, text: str) -> Assessment:
    """Check each instruction against the text, with the parameters at its place in `kwargs`."""
    readings = loose_readings(text)
    passed, strict, loose = [], [], []
    for position, instruction in enumerate(instructions):
        asked = parameters_of(kwargs, position)
        rule = OFFICIAL_RULES.get(_OFFICIAL_NAMES.get(instruction, instruction))
        strict.append(_is_followed(rule, text, asked))
        loose.append(strict[-1] or any(_is_followed(rule, one, asked) for one in readings))
        in_table = TABLE_RULES.get(instruction)
        passed.append(_holds(in_table, text, asked) if in_table else strict[-1])
    scores = {
        "ifeval_strict": float(all(passed)),
        "ifeval_loose": _share(passed),
        "ifeval_prompt_strict": float(all(strict)),
        "ifeval_prompt_loose": float(all(loose)),
        "ifeval_inst_strict": _share(strict),
        "ifeval_inst_loose": _share(loose),
    }
    details = {
        "instructions": len(instructions),
        "followed_strict": sum(strict),
        "followed_loose": sum(loose),
    }
    named = {
        "failed": _ids_without(instructions, passed),
        "not_followed": _ids_without(instructions, strict),
        "unknown": [one for one in instructions if one not in _KNOWN],
    }
    return Assessment(scores, details | {key: ids for key, ids in named.items() if ids})


def loose_readings(text: str) -> list[str]:
    """Return the other readings the paper's loose accuracy allows, each once.

    They are without the first line, the last or both (an introduction, a
    farewell), and each of these and the text itself without asterisks.
    """
    lines = text.split("\n")
    parts = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    readings = [text, *parts]
    distinct = dict.fromkeys(readings + [one.replace("*", "") for one in readings])
    return [one for one in distinct if one != text]


def _is_followed(rule: Rule | None, text: str, asked: Parameters) -> bool:
    # An unknown instruction, or one that asks for nothing, is not held against a response.
    if rule is None or any(asked.get(name) in (None, "", [], ()) for name in rule.needs):
        return True
    return bool(text.strip()) and _holds(rule.follows, text, asked)


def _holds(follows: Callable[[str, Parameters], bool], text: str, asked: Parameters) -> bool:
    try:
        return follows(text, asked)
    except _UNCHECKABLE:
        return False


def _ids_without(instructions: list[str], verdicts: list[bool]) -> list[str]:
    return [one for one, verdict in zip(instructions, verdicts, strict=True) if not verdict]


def _share(verdicts: list[bool]) -> float:
    return sum(verdicts) / len(verdicts) if verdicts else 1.0
