"""Verdicts under a name, in JSON or between tags, such as `{"label": "WRONG"}`."""

import re
from collections.abc import Sequence

YES_NO = ("verdict", "label", "is_correct", "correct", "judgement", "judgment", "decision")
RATING = ("rating", "score", "grade", "final_rating", "final_score", "overall_rating")
CHOICE = ("winner", "verdict", "choice", "preference", "preferred", "better")


def under_a_name(reply: str, names: Sequence[str]) -> str | None:
    """Return what stands under the first of the names that the reply has; None if it has none.

    The empty text is returned where one name has several values, which is no verdict.
    """
    for name in names:
        # A reply that was cut off has its verdict all the same, so this is not a parser of JSON.
        in_json = (
            rf'["\']{name}["\'] ?: ?'
            r'(?:"([^"\n]{0,200})"|\'([^\'\n]{0,200})\'|([\w.+-]{1,40}))'
        )
        in_tags = rf"<{name}>([^<]{{0,200}})</{name}>"
        found = re.findall(in_json, reply, re.IGNORECASE) if "{" in reply else []
        values = {"".join(match).strip().lower() for match in found}
        values |= {text.strip().lower() for text in re.findall(in_tags, reply, re.IGNORECASE)}
        if values:
            return values.pop() if len(values) == 1 else ""
    return None
