"""AlpacaEval: what its own program found out about a response, taken from its annotations."""

from typing import Any

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo
from cbench_server.types import Example, Scores

_DRAWS = (0.0, 1.5)


class AlpacaEval(ResponseEvaluator):
    """Gives `alpaca_win_rate`, and `alpaca_lc_win_rate` where the program controlled for length.

    The example's `preference` says which response won, from 1 for the baseline's to 2 for the
    system's, `glm_preference` how likely the system's wins at equal length;
    `cbench rescore --references annotations.json` puts them there.
    """

    name = "alpaca-eval"
    description = "Whether the response wins over the baseline's, by AlpacaEval's own annotations."
    required_fields = ("preference",)
    score_infos = (
        ScoreInfo("alpaca_win_rate", "1.0 if the response won, 0.5 for a draw; weighted, between."),
        ScoreInfo("alpaca_lc_win_rate", "How likely it wins at the baseline's length."),
    )

    def __init__(self) -> None:
        super().__init__()
        self.options = {}

    def score(self, original: Example, processed: Example) -> Scores:
        scores: Scores = {}
        preference = _number(original.get("preference"))
        if preference in _DRAWS:
            scores["alpaca_win_rate"] = 0.5
        elif preference is not None and 1.0 <= preference <= 2.0:
            scores["alpaca_win_rate"] = preference - 1.0
        controlled = _number(original.get("glm_preference"))
        if controlled is not None and 0.0 <= controlled <= 1.0:
            scores["alpaca_lc_win_rate"] = controlled
        return scores


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None
