"""Subspan exact match: does the normalised response contain a normalised answer?"""

import string

import regex

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.types import Example, Scores

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
# The official script uses this package, whose words include combining marks.
_ARTICLES = regex.compile(r"\b(?:a|an|the)\b")


class SubspanExactMatch(ResponseEvaluator):
    """Gives `subspan_em`: 1.0 if a reference is a part of the response, else 0.0.

    Unless `first_line` is false, only the first line of the response counts:
    the answer is in the context, so a response that copies the context would be right.
    With `skip_empty` that is the first one that is not empty, as LLMLingua-2 has it.
    """

    name = "subspan-em"
    description = "Whether the response contains an answer, as Lost in the Middle scores it."
    required_fields = ("answer",)
    score_infos = (ScoreInfo("subspan_em", "1.0 if the response contains an answer."),)

    def __init__(
        self, *, first_line: bool = True, skip_empty: bool = False, strip_thinking: bool = True
    ) -> None:
        super().__init__(strip_thinking=strip_thinking)
        self.options = {"first_line": first_line, **self.options}
        # A run that asks for nothing else is recorded as it always was.
        if skip_empty:
            self.options["skip_empty"] = True
        self._first_line = first_line
        self._skip_empty = skip_empty

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        response = self.response(processed)
        if self._first_line:
            whole = response.lstrip("\n") if self._skip_empty else response
            response = whole.partition("\n")[0]
        given = _plain(response)
        return {"subspan_em": float(any(_plain(reference) in given for reference in expected))}


def _plain(text: str) -> str:
    words = _ARTICLES.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split()
    return " ".join(words).lower()
