"""Answers compared by math-verify, extraction included, unless they say what differs."""

from cbench_server.evaluators.math.answers import final_answer, reference_answer
from cbench_server.evaluators.math.comparison import differ
from cbench_server.evaluators.math.program import verify_response

# Longer solutions are read from their end, where answers are.
_MAX_READ = 20_000


def agrees_by_verify(response: str, reference: str) -> bool:
    """Whether math-verify finds the reference in the response.

    It drops units, subscripts and the case of letters, so 5 cm and 5 hours are
    equal to it. They are not here.
    """
    gold = reference_answer(reference)
    if not gold or not response.strip():
        return False
    if not verify_response(gold, response[-_MAX_READ:]).equal:
        return False
    answer = final_answer(response)
    return not all(differ(gold, text) for text in (answer.text, answer.whole) if text)
