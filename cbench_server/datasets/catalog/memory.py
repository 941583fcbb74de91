"""Memory: conversations over many sessions, and questions about them.

An example has `turns` (role, content, speaker, time, session), `qa_pairs` (question, answer,
type, is_abstention) and, for systems without a memory, the transcript as `context`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any

from cbench_server.datasets.catalog.fields import as_text
from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS, hub_dataset
from cbench_server.types import Example

_dataset = partial(
    hub_dataset,
    family="memory",
    reference_fields=(
        *DEFAULT_REFERENCE_FIELDS,
        "qa_pairs",
        "question_id",
        "question_type",
        "is_abstention",
    ),
    evaluators=("answer-quality", "abstention"),
    official=False,
)

# Names that fit what LoCoMo's own scorer does with the codes: it splits the
# answers of 1 at commas and tests 5 for an abstention.
_LOCOMO_TYPES = {
    "1": "multi_hop",
    "2": "temporal",
    "3": "open_domain",
    "4": "single_hop",
    "5": "adversarial",
}
# A line with the time has a digit before its first colon, and a speaker's name does not. But the
# second line of "We meet\nat 3:30" has one, too.
_LOCOMO_TIME = re.compile(r"^[^:]*\d:\d\d")
_LOCOMO_LINE = re.compile(r"(Speaker_\d|[^\W\d][^:]{0,60}(?<!\d)): ?(.*)")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_NUMBERED_SPEAKERS = {"Speaker_1": "user", "Speaker_2": "assistant"}


def _locomo(row: Row, index: int) -> Example | None:
    turns = _locomo_turns(row["turns"])
    pairs = [*_locomo_pairs(row)]
    if not turns or not pairs:
        return None
    given = row.get("dialogue_id")
    return {
        "id": index if given is None else given,
        "context": transcript(turns),
        "turns": turns,
        "qa_pairs": pairs,
    }


def _locomo_turns(texts: list[str]) -> list[Example]:
    turns: list[Example] = []
    time, session, roles = "", 0, dict(_NUMBERED_SPEAKERS)
    lines = ((at, line.strip()) for text in texts for at, line in enumerate(text.splitlines()))
    for at, line in lines:
        if spoken := _LOCOMO_LINE.fullmatch(line):
            speaker = spoken[1].strip()
            role = roles.setdefault(speaker, "assistant" if len(roles) % 2 else "user")
            turns.append(
                {
                    "role": role,
                    "content": spoken[2].strip(),
                    "speaker": speaker,
                    "time": time,
                    "session": str(session or 1),
                }
            )
        elif _LOCOMO_TIME.search(line) and (at == 0 or _ISO.fullmatch(iso_time(line))):
            time, session = iso_time(line), session + 1
        elif line and turns:
            turns[-1]["content"] += f"\n{line}"
    return [turn for turn in turns if turn["content"]]


def _locomo_pairs(row: Row) -> Iterator[Example]:
    for question, answer, code in zip(
        row["questions"], row["answers"], row["category"], strict=True
    ):
        kind = _LOCOMO_TYPES.get(str(code), str(code))
        # An adversarial question has no answer; one that the source gives is the trap.
        is_adversarial = kind == "adversarial"
        expected = "" if is_adversarial else as_text(answer).strip()
        if as_text(question).strip() and (expected or is_adversarial):
            yield {
                "question": question.strip(),
                "answer": expected,
                "type": kind,
                "is_abstention": is_adversarial,
            }


LOCOMO = _dataset(
    "locomo",
    Part(repository="KhangPTT373/locomo_preprocess"),
    each(_locomo),
    description="Conversations of two friends over months, with about 200 questions each.",
    licence="CC BY-NC 4.0",
    citation="Maharana et al. 2024, arXiv:2402.17753",
)


def _longmemeval(row: Row, index: int) -> Example | None:
    turns = [*_longmemeval_turns(row)]
    question = as_text(row["question"]).strip()
    given = row["answer"]
    answer = as_text(given[0] if isinstance(given, list) and given else given or "").strip()
    if not turns or not question or not answer:
        return None
    is_abstention = str(row["question_id"]).endswith("_abs")
    about = {"question": question, "answer": answer}
    return {
        "id": _neutral_id(row["question_id"]) if is_abstention else row["question_id"],
        "question_id": row["question_id"],
        "context": transcript(turns),
        **about,
        "question_date": iso_time(as_text(row.get("question_date"))),
        "question_type": row["question_type"],
        "is_abstention": is_abstention,
        "turns": turns,
        "qa_pairs": [{**about, "type": row["question_type"], "is_abstention": is_abstention}],
    }


def _neutral_id(question_id: str) -> str:
    """Return an id that does not show that the question has no answer, as the source's does.

    Only dropping the ending would give some the id of the question they were made from.
    """
    before, underscore, _ = question_id.removesuffix("_abs").rpartition("_")
    return before + underscore + blake2b(question_id.encode(), digest_size=4).hexdigest()


def _longmemeval_turns(row: Row) -> Iterator[Example]:
    sessions = row["haystack_sessions"]
    times = [iso_time(date) for date in row.get("haystack_dates") or [""] * len(sessions)]
    dated = [*zip(times, sessions, strict=True)]
    if all(_ISO.fullmatch(time) for time in times):
        # One variant of the source does not order them.
        dated.sort(key=lambda pair: pair[0])
    # Numbered, because the source's ids begin with "answer" where the answer is.
    for number, (time, session) in enumerate(dated, 1):
        for turn in session:
            if content := as_text(turn["content"]).strip():
                yield {
                    "role": turn["role"],
                    "content": content,
                    "time": time,
                    "session": str(number),
                }


LONGMEMEVAL = _dataset(
    "longmemeval",
    {
        variant: (
            Part(
                repository="xiaowu0162/longmemeval",
                config=variant,
                file=f"longmemeval_{variant}",
            ),
        )
        for variant in ("s", "m", "oracle")
    },
    each(_longmemeval),
    default_config="s",
    description="Questions about dozens of chats with an assistant, some without an answer.",
    size=500,
    licence="MIT",
    citation="Wu et al. 2024, arXiv:2410.10813",
)

RECORDS = (LOCOMO, LONGMEMEVAL)


def transcript(turns: Sequence[Mapping[str, Any]]) -> str:
    """Render turns as text, one per line, with times and speakers where they are known."""
    return "\n".join(
        f"{'[' + turn['time'] + '] ' if turn.get('time') else ''}"
        f"{turn.get('speaker') or turn['role']}: {turn['content']}"
        for turn in turns
    )


def iso_time(text: str) -> str:
    """Return a time in ISO 8601, or the text unchanged where its form is not known."""
    plain = re.sub(r"\s*\(\w+\)", "", text).strip()
    for form in ("%I:%M %p on %d %B, %Y", "%Y/%m/%d %H:%M"):
        try:
            return datetime.strptime(plain, form).isoformat(timespec="minutes")
        except ValueError:
            continue
    return text.strip()
