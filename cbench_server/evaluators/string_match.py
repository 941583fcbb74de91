"""String match: which of the expected strings the response contains, as RULER scores it."""

from typing import Literal, get_args

from cbench_server.errors import InvalidInput
from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.types import Example, Scores

Mode = Literal["all", "part"]

_CONTROL_TO_NEWLINE = dict.fromkeys(range(32), "\n")


class StringMatch(ResponseEvaluator):
    """Gives `string_match`: the share of the references found, or 1.0 for any of them.

    `mode="all"` is for tasks that ask for every reference, `mode="part"` for
    those whose references are alternatives. RULER takes no account of case, nor of
    which control characters there are; NoLiMa, by `case_sensitive`, takes all as it is.
    """

    name = "string-match"
    description = "Share of the expected strings that the response contains, as in RULER."
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("string_match", "Share of the strings found; by mode part, 1.0 for any."),
    )

    def __init__(
        self, *, mode: Mode = "all", case_sensitive: bool = False, strip_thinking: bool = True
    ) -> None:
        if mode not in get_args(Mode):
            raise InvalidInput(f'string-match has no mode "{mode}"; it is all or part')
        super().__init__(strip_thinking=strip_thinking)
        self.options = {"mode": mode, **self.options}
        # A run that asks for nothing else is recorded as it always was.
        if case_sensitive:
            self.options["case_sensitive"] = True
        self._mode = mode
        self._case_sensitive = case_sensitive

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        response = self.response(processed)
        if not self._case_sensitive:
            response = response.strip().translate(_CONTROL_TO_NEWLINE).strip().lower()
            expected = [reference.lower() for reference in expected]
        found = [reference in response for reference in expected]
        if self._mode == "part":
            return {"string_match": float(any(found))}
        return {"string_match": sum(found) / len(found)}
