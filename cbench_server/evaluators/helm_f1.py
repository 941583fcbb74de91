"""HELM's F1: of the different words of a response and a reference, however often they occur."""

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.texts.answers import answer_tokens
from cbench_server.types import Example, Scores


class HelmF1(ResponseEvaluator):
    """Gives `helm_f1`, of the reference that is best by it."""

    name = "helm-f1"
    description = "F1 of the sets of words, as HELM scores NarrativeQA."
    required_fields = ("answer",)
    score_infos = (ScoreInfo("helm_f1", "F1 of the different words of response and answer."),)

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        given = set(answer_tokens(self.response(processed)))
        return {"helm_f1": max(_f1(given, set(answer_tokens(each))) for each in expected)}


def _f1(given: set[str], wanted: set[str]) -> float:
    shared = len(given & wanted)
    if not shared:
        return 0.0
    precision, recall = shared / len(given), shared / len(wanted)
    # Written as HELM rounds it.
    return 1.0 / (0.5 / precision + 0.5 / recall)
