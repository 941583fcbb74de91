"""Multiple choice: did the response settle on the right letter?"""

import string

from cbench_server.evaluators.choice.answer_letter import extract_choice, offered
from cbench_server.evaluators.choice.extraction import EXTRACTIONS
from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo
from cbench_server.types import Assessment, Example

_UNKNOWN_CHOICES = 10


class MultipleChoiceAccuracy(ExplainingEvaluator):
    """Gives `mc_accuracy`: 1.0 for the right letter, else 0.0."""

    name = "multiple-choice"
    description = "Whether the letter the response settles on is the correct one."
    required_fields = ("correct_letter",)
    # Statement after statement takes most: 40 ms up to here.
    inline_limit: int | None = 4_000
    score_infos = (ScoreInfo("mc_accuracy", "1.0 if the response settles on the correct letter."),)

    def __init__(self, *, extraction: str = "", strip_thinking: bool = True) -> None:
        super().__init__(strip_thinking=strip_thinking)
        if extraction and extraction not in EXTRACTIONS:
            known = ", ".join(EXTRACTIONS)
            raise ValueError(f'extraction "{extraction}" is not one of: {known}')
        # A run that asks for nothing else is recorded as it always was.
        if extraction:
            # A benchmark's own rule is a search or two, our own is many.
            self.inline_limit = None
            self.options = {"extraction": extraction, **self.options}
        self._extract = EXTRACTIONS.get(extraction, extract_choice)

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair; the details say which letter was read, and how."""
        correct = original.get("correct_letter")
        if correct is None:
            return Assessment({})
        text = self.response(processed)
        options = offered(original.get("choices"))
        count = min(len(options) or _UNKNOWN_CHOICES, len(string.ascii_uppercase))
        choice = self._extract(text, string.ascii_uppercase[:count], options)
        expected = str(correct).strip().strip("().").upper()
        is_right = choice.letter is not None and choice.letter == expected
        return Assessment(
            {"mc_accuracy": float(is_right)}, {"letter": choice.letter, "how": choice.how}
        )
