"""BFCL: does the response call the right functions with the right arguments?"""

import re
from typing import Any

from cbench_server.errors import EvaluatorBroken
from cbench_server.evaluators.bfcl.calls import Call, NoCalls, read_calls
from cbench_server.evaluators.bfcl.languages import Language, language_of
from cbench_server.evaluators.bfcl.matching import mismatch
from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo
from cbench_server.types import Assessment, Example

_FORMATS = ("auto", "python", "json")
# Categories of the leaderboard that take more than reading one list of calls.
_REFUSED = (
    (r"multi_turn\w*|exec_\w+|rest", "it needs the functions themselves"),
    (r"sql|chatable|format_sensitivity", "the leaderboard does not count it"),
    (r"memory_(?:kv|vector|rec_sum)|web_search\w*", "it is a task for agents"),
)


class BFCL(ExplainingEvaluator):
    """Gives `bfcl_accuracy`: 1.0 if the calls are those accepted, or rightly none, else 0.0."""

    name = "bfcl"
    description = "Whether the calls match the accepted ones, by the AST rules of BFCL."
    required_fields = ("tools", "ground_truth")
    score_infos = (ScoreInfo("bfcl_accuracy", "1.0 if every call is one that is accepted."),)

    def __init__(
        self,
        *,
        response_format: str = "auto",
        underscore_to_dot: bool = False,
        strip_thinking: bool = True,
    ) -> None:
        if response_format not in _FORMATS:
            raise ValueError(
                f'response_format "{response_format}" is not one of: auto, python, json'
            )
        super().__init__(strip_thinking=strip_thinking)
        self.options |= {
            "response_format": response_format,
            "underscore_to_dot": underscore_to_dot,
        }
        self._format = response_format
        self._underscores = underscore_to_dot

    def applies(self, original: Example) -> bool:
        """Whether there are accepted calls, or the category says whether one is wanted at all."""
        category = str(original.get("category") or "")
        return original.get("ground_truth") is not None or "relevance" in category

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair; the details say how many calls were read, and what is wrong with them."""
        category = str(original.get("category") or "")
        _check_category(category)
        accepted = original.get("ground_truth")
        if accepted is None and "relevance" not in category:
            return Assessment({})
        text, language = self.response(processed), language_of(category)
        try:
            calls, reason = read_calls(text, self._format, language.read), ""
        except NoCalls as error:
            calls, reason = [], str(error)
        if "relevance" in category or not accepted:
            reason = _relevance(calls, is_call_wanted=category.endswith("_relevance"))
        elif not reason:
            reason = self._mismatch(calls, original, language)
        details: dict[str, Any] = {"calls": len(calls)} | ({"reason": reason} if reason else {})
        return Assessment({"bfcl_accuracy": float(not reason)}, details)

    def _mismatch(self, calls: list[Call], original: Example, language: Language) -> str:
        tools = original.get("tools") or []
        accepted = original["ground_truth"]
        try:
            return mismatch(
                calls, accepted, tools, underscores=self._underscores, language=language
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise EvaluatorBroken(
                "tools and ground_truth are not of the form BFCL has them: a list of functions "
                f"and a list of calls with values ({type(error).__name__}: {error!s:.80})"
            ) from error


def _check_category(category: str) -> None:
    for names, why in _REFUSED:
        if re.fullmatch(names, category):
            raise EvaluatorBroken(f'bfcl does not score the category "{category}": {why}')


def _relevance(calls: list[Call], *, is_call_wanted: bool) -> str:
    if is_call_wanted:
        return "" if calls else "no function is called"
    return "a function is called where none fits" if calls else ""
