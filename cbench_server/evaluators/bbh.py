"""BIG-Bench Hard: is the text after "the answer is" the target, to the letter?"""

from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo, references
from cbench_server.types import Assessment, Example

_CUE = "the answer is "


class BigBenchHard(ExplainingEvaluator):
    """Gives `bbh_exact_match`: 1.0 if the answer that is read equals a reference, else 0.0."""

    name = "bbh"
    description = 'Whether what follows "the answer is", or else the response, is the target.'
    required_fields = ("answer",)
    score_infos = (ScoreInfo("bbh_exact_match", "1.0 if the answer is the target, as written."),)

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair; the details say what was read as the answer."""
        expected = references(original)
        if not expected:
            return Assessment({})
        answer = bbh_answer(self.response(processed))
        is_right = any(answer == reference.strip() for reference in expected)
        return Assessment({"bbh_exact_match": float(is_right)}, {"answer": answer[:200]})


def bbh_answer(response: str) -> str:
    """Return what follows the first cue on its line, without the full stop; else all of it."""
    _, cue, rest = response.partition(_CUE)
    if not cue:
        return response.strip()
    return rest.partition("\n")[0].strip().removesuffix(".")
