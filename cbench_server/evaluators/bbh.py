"""BIG-Bench Hard: is the text after "the answer is" the target, to the letter?"""

from cbench_server.evaluators.inputs import ScoreInfo, references, response_text
from cbench_server.types import Assessment, Example, Placement, Scores

_CUE = "the answer is "


class BigBenchHard:
    """Gives `bbh_exact_match`: 1.0 if the answer that is read equals a reference, else 0.0."""

    name = "bbh"
    version = "1"
    description = 'Whether what follows "the answer is", or else the response, is the target.'
    placement: Placement = "inline"
    reads = "response"
    required_fields = ("answer",)
    score_infos = (ScoreInfo("bbh_exact_match", "1.0 if the answer is the target, as written."),)

    def __init__(self, *, strip_thinking: bool = True) -> None:
        self.options = {"strip_thinking": strip_thinking}
        self._strip_thinking = strip_thinking

    def score(self, original: Example, processed: Example) -> Scores:
        return self.assess(original, processed).scores

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair; the details say what was read as the answer."""
        expected = references(original)
        if not expected:
            return Assessment({})
        answer = bbh_answer(response_text(processed, strip=self._strip_thinking))
        is_right = any(answer == reference.strip() for reference in expected)
        return Assessment({"bbh_exact_match": float(is_right)}, {"answer": answer[:200]})


def bbh_answer(response: str) -> str:
    """Return what follows the first cue on its line, without the full stop; else all of it."""
    _, cue, rest = response.partition(_CUE)
    if not cue:
        return response.strip()
    return rest.partition("\n")[0].strip().removesuffix(".")
