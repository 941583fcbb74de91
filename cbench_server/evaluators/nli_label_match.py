"""Natural language inference: does the response settle on the right label?"""

import re

from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo, expected_answers
from cbench_server.evaluators.nli_labels import Label, Mention, exact_mention, mentions, plain
from cbench_server.types import Assessment, Example

_SENTENCE = re.compile(r"[^.;!?\n]+[.;!?]?")
# What introduces a verdict; the label follows.
_CUE = re.compile(
    r"\b(?:answer|label|verdict|classification|judge?ment|conclusion|relation(?:ship)?|prediction)"
    r"(?: \w+){0,8}? ?(?:\bis\b|\bbe\b|[:=])"
    r"|\b(?:claim|statement|hypothesis) (?:is|was)\b(?! that\b| about\b)"
    r"|\b(?:classif(?:y|ied)|labell?ed|categori[sz]ed?)(?: \w+){0,6}? as\b"
    r"|\b(?:therefore|thus|hence|so|consequently|overall|in conclusion|in summary)\b"
)

_BARE_NO = Mention("contradiction", "reply")


class NLILabelMatch(ExplainingEvaluator):
    """Gives `nli_accuracy`: 1.0 for the right label, else 0.0."""

    name = "nli-label-match"
    description = "Whether the response settles on the label: entailed, contradicted or neither."
    # Thousands of sentences take most: 20 ms up to here.
    inline_limit = 8_000
    required_fields = ("answer",)
    score_infos = (ScoreInfo("nli_accuracy", "1.0 if the response settles on the label."),)

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score the response; details tell the label it was found to settle on."""
        expected = expected_answers(original)
        if not expected:
            return Assessment({})
        text = self.response(processed)
        label = extract_label(text)
        matches = any(_matches(gold, text, label) for gold in expected)
        details = {"label": label} if label else {}
        return Assessment({"nli_accuracy": float(matches)}, details)


def extract_label(response: str) -> Label | None:
    """Return the label a response settles on, or None.

    An explicit statement beats a mention, and the last of several wins. Among
    mentions the plainest kind wins, then the last.
    """
    text = plain(response)
    if whole := exact_mention(text):
        return whole.label
    stated: Mention | None = None
    seen: list[Mention] = []
    for found in _SENTENCE.finditer(text):
        # What follows "whether" is the question, not an answer to it.
        sentence = found[0].partition("whether")[0]
        if not sentence.endswith("?"):
            stated = _statement(sentence, opens=found.start() == 0) or stated
            seen.extend(mentions(sentence))
    denied = {one.label for one in seen if one.is_denied}
    seen = [one for one in seen if not one.is_denied]
    if stated:
        # "No: it is not mentioned" says that nothing is known, not that it is false.
        if stated == _BARE_NO and any(one.label == "not mentioned" for one in seen):
            return "not mentioned"
        return stated.label
    for kind in ("name", "absence", "truth", "reply"):
        if labels := [one.label for one in seen if one.kind == kind]:
            return labels[-1]
    return "not mentioned" if denied >= {"entailment", "contradiction"} else None


def _statement(sentence: str, *, opens: bool) -> Mention | None:
    whole = exact_mention(sentence)
    # A bare "no" further on may answer a question that the response put itself.
    if whole and (opens or whole.kind != "reply"):
        return whole
    end = len(sentence)
    for cue in reversed(list(_CUE.finditer(sentence))):
        for one in mentions(sentence[cue.end() : end]):
            if not one.is_denied:
                return one
        end = cue.start()
    return None


def _matches(gold: str, response: str, label: Label | None) -> bool:
    wanted = plain(gold)
    if not wanted:
        return not gold.strip()
    known = exact_mention(wanted)
    if known:
        return known.label == label
    # A label of another task: the response has to be that label and nothing else.
    return wanted.strip(" ,:.;!?=") == plain(response).strip(" ,:.;!?=")
