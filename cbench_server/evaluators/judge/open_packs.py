"""Packs that grade or compare open answers; the words are our own."""

from cbench_server.evaluators.judge.packs import JudgePack
from cbench_server.evaluators.judge.ratings import Scale

_FIVE = Scale(
    1,
    5,
    {
        1: "wrong, irrelevant, or no answer at all",
        2: "major errors, or most of what matters is missing",
        3: "partly right, but key details are missing or wrong",
        4: "right, with minor flaws",
        5: "excellent: right and complete",
    },
)
_SCALE = "\n".join(f"{number}: {meaning}" for number, meaning in _FIVE.meanings.items())
_RATE = "Now rate the RESPONSE. Reply with one number from 1 to 5 and nothing else."
_NO_RATING = "Your reply holds no rating. Reply with one number from 1 to {}, and nothing else."

CORRECTNESS = JudgePack(
    name="correctness",
    kind="rating",
    instructions=f"""\
You are an expert judge of answers. Rate how well the RESPONSE answers the QUESTION, on this scale:
{_SCALE}
Where a REFERENCE is given, it holds the correct answer, or several that are accepted: what agrees \
with it in substance is right, however it is worded. Where none is given, judge by what you \
know.""",
    closing=_RATE,
    reminder=_NO_RATING.format(5),
    max_tokens=16,
    scale=_FIVE,
)

HELPFULNESS = JudgePack(
    name="helpfulness",
    kind="rating",
    instructions=f"""\
You are an expert judge of answers to open questions. Rate how well the RESPONSE serves whoever \
asked the QUESTION: whether it is relevant, accurate, thorough and clear. Length by itself earns \
nothing. Use this scale:
{_SCALE}""",
    closing=_RATE,
    reminder=_NO_RATING.format(5),
    max_tokens=16,
    shows_reference=False,
    scale=_FIVE,
)

MT_BENCH = JudgePack(
    name="mt-bench",
    kind="rating",
    instructions="""\
You grade the answers of a chat assistant without favour. Consider how helpful, relevant, \
accurate, deep, creative and detailed the last RESPONSE of the conversation is as an answer to the \
last QUESTION; what was said before matters as far as the last QUESTION builds on it. Where a \
REFERENCE is given, it is a correct answer: find mistakes by comparing with it. The grade is a \
whole number from 1, which is worst, to 10, which is best.""",
    closing="Explain briefly, then end with the grade on a line of its own, such as: Grade: 6",
    reminder=_NO_RATING.format(10),
    max_tokens=512,
    scale=Scale(1, 10),
    is_by_turn=True,
)

ALPACA_EVAL = JudgePack(
    name="alpaca-eval",
    kind="pairwise",
    instructions="""\
Two models were given the same QUESTION, which may be any request. RESPONSE A and RESPONSE B are \
what they wrote. Decide which of the two most people would rather have: the one that does what was \
asked, correctly and usefully. Neither the order in which they stand nor their length is a \
merit.""",
    closing="Which is better? Reply with the single letter A or B, or C if neither is better.",
    reminder="Your reply holds no choice. Reply with the single letter A, B or C, and nothing "
    "else.",
    max_tokens=16,
)

OPEN_PACKS = (CORRECTNESS, HELPFULNESS, MT_BENCH, ALPACA_EVAL)
