"""Packs that ask whether an answer is right, given the expected one; the words are our own."""

from cbench_server.evaluators.judge.packs import ABSTENTION, JudgePack

_YES_OR_NO = (
    "Is the RESPONSE correct? Reply with YES or NO on the first line, "
    "then give the reason in one sentence."
)
_REMINDER = "Your reply holds no verdict. Reply with the single word YES or NO, and nothing else."

MEMORY_QA = JudgePack(
    name="memory-qa",
    kind="yes-no",
    instructions="""\
You are a strict but fair judge of a system that answers questions about past conversations. \
Decide whether the RESPONSE answers the QUESTION correctly, given the REFERENCE, which holds the \
correct answer or several that are accepted. It is correct when it conveys the same essential \
information; other words and further context do no harm. It is not correct when the essential \
information is missing, different or contradicted.""",
    closing=_YES_OR_NO,
    reminder=_REMINDER,
    max_tokens=64,
)

STRICT = JudgePack(
    name="strict",
    kind="yes-no",
    instructions="""\
You check answers as an exacting examiner. The REFERENCE holds the correct answer to the QUESTION, \
or several that are accepted. The RESPONSE is correct only if it states everything that the \
REFERENCE states: each name, number, date and item of a list, in any wording. It is not correct if \
any of these is missing, vague or different, if it hedges between several answers, or if it \
contradicts itself.""",
    closing=_YES_OR_NO,
    reminder=_REMINDER,
    max_tokens=64,
)

LENIENT = JudgePack(
    name="lenient",
    kind="yes-no",
    instructions="""\
You check answers generously. The REFERENCE holds the correct answer to the QUESTION, or several \
that are accepted. The RESPONSE is correct if someone who asked the QUESTION would come away \
with the gist of the REFERENCE: a part of a list, a coarser date, a longer explanation around it \
or a slip in a detail that was not asked for is forgiven. It is not correct if it gives a \
different answer, or none.""",
    closing=_YES_OR_NO,
    reminder=_REMINDER,
    max_tokens=64,
)

_SAME = """\
The RESPONSE is correct if it contains the answer in the REFERENCE or says the same in other \
words, also where it only lists all the steps that lead there. It is not correct if it has only a \
part of the information that the REFERENCE asks for."""

LONGMEMEVAL = JudgePack(
    name="longmemeval",
    kind="yes-no",
    instructions=f"""\
A chat assistant was asked the QUESTION about earlier chats with the user; the REFERENCE is the \
correct answer. {_SAME}""",
    by_type={
        "temporal-reasoning": f"""\
A chat assistant was asked the QUESTION about when things happened in earlier chats with the user; \
the REFERENCE is the correct answer. {_SAME} Where days, weeks or months are counted, a result \
that is off by one is still correct.""",
        "knowledge-update": """\
A chat assistant was asked the QUESTION about something that changed in the course of earlier \
chats with the user; the REFERENCE is the answer that holds now. The RESPONSE is correct if it \
gives that up-to-date answer; mentioning how things were before, too, does no harm. With only what \
was true before, it is not correct.""",
        "single-session-preference": """\
A chat assistant was asked the QUESTION, and should have made use of what the user had told it \
earlier. The REFERENCE describes what a personal reply would take into account. The RESPONSE is \
correct if it recalls what the user had said and uses it rightly; it need not cover every point \
of the description.""",
        ABSTENTION: """\
A chat assistant was asked a QUESTION that the earlier chats with the user do not answer; the \
REFERENCE explains why. The RESPONSE is correct if it recognises that the question cannot be \
answered: it may say that the information is missing or incomplete, or that something else was \
mentioned instead. It is not correct if it answers as if it knew.""",
    },
    averages_types=True,
    closing=_YES_OR_NO,
    reminder=_REMINDER,
    max_tokens=64,
)

LOCOMO = JudgePack(
    name="locomo",
    kind="yes-no",
    instructions="""\
Two people talked with each other over months, and a system with a memory of it was asked the \
QUESTION. The REFERENCE is a short answer that is known to be right; the RESPONSE may be far \
longer. Be generous: it is correct as long as it speaks of the same thing as the REFERENCE. A date \
is correct if it means the same day, month or year, in whatever form, also a relative one such as \
"last Tuesday". It is not correct if it speaks of something else.""",
    closing=_YES_OR_NO,
    reminder=_REMINDER,
    max_tokens=64,
)

FRAMES = JudgePack(
    name="frames",
    kind="yes-no",
    instructions="""\
The QUESTION needs facts from several encyclopedia articles; the REFERENCE is its true answer. \
Compare the RESPONSE with it: do its meaning and all essential facts stand in the RESPONSE? Other \
wording, other forms of numbers and additional explanation do no harm.""",
    closing="Reply with TRUE if the RESPONSE contains the answer of the REFERENCE, or FALSE if it "
    "does not, on the first line; then give the reason in one sentence.",
    reminder="Your reply holds no verdict. Reply with the single word TRUE or FALSE, and nothing "
    "else.",
    max_tokens=64,
)

ANSWER_PACKS = (MEMORY_QA, STRICT, LENIENT, LONGMEMEVAL, LOCOMO, FRAMES)
