"""Multiple choice: did the response settle on the right letter?"""

import string

from cbench_server.evaluators.choice.answer_letter import extract_choice, offered
from cbench_server.evaluators.inputs import ScoreInfo, response_text
from cbench_server.types import Assessment, Example, Placement, Scores

_UNKNOWN_CHOICES = 10


class MultipleChoiceAccuracy:
    """Gives `mc_accuracy`: 1.0 for the right letter, else 0.0."""

    name = "multiple-choice"
    version = "1"
    description = "Whether the letter the response settles on is the correct one."
    placement: Placement = "inline"
    reads = "response"
    required_fields = ("correct_letter",)
    score_infos = (ScoreInfo("mc_accuracy", "1.0 if the response settles on the correct letter."),)

    def __init__(self, *, strip_thinking: bool = True) -> None:
        self.options = {"strip_thinking": strip_thinking}
        self._strip_thinking = strip_thinking

    def score(self, original: Example, processed: Example) -> Scores:
        return self.assess(original, processed).scores

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair; the details say which letter was read, and how."""
        correct = original.get("correct_letter")
        if correct is None:
            return Assessment({})
        text = response_text(processed, strip=self._strip_thinking)
        options = offered(original.get("choices"))
        count = min(len(options) or _UNKNOWN_CHOICES, len(string.ascii_uppercase))
        choice = extract_choice(text, string.ascii_uppercase[:count], options)
        expected = str(correct).strip().strip("().").upper()
        is_right = choice.letter is not None and choice.letter == expected
        return Assessment(
            {"mc_accuracy": float(is_right)}, {"letter": choice.letter, "how": choice.how}
        )
