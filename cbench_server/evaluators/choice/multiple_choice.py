"""Multiple choice: did the response settle on the right letter?"""

import string

from cbench_server.evaluators.choice.answer_letter import extract_choice, offered
from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo
from cbench_server.types import Assessment, Example

_UNKNOWN_CHOICES = 10


class MultipleChoiceAccuracy(ExplainingEvaluator):
    """Gives `mc_accuracy`: 1.0 for the right letter, else 0.0."""

    name = "multiple-choice"
    description = "Whether the letter the response settles on is the correct one."
    required_fields = ("correct_letter",)
    score_infos = (ScoreInfo("mc_accuracy", "1.0 if the response settles on the correct letter."),)

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair; the details say which letter was read, and how."""
        correct = original.get("correct_letter")
        if correct is None:
            return Assessment({})
        text = self.response(processed)
        options = offered(original.get("choices"))
        count = min(len(options) or _UNKNOWN_CHOICES, len(string.ascii_uppercase))
        choice = extract_choice(text, string.ascii_uppercase[:count], options)
        expected = str(correct).strip().strip("().").upper()
        is_right = choice.letter is not None and choice.letter == expected
        return Assessment(
            {"mc_accuracy": float(is_right)}, {"letter": choice.letter, "how": choice.how}
        )
