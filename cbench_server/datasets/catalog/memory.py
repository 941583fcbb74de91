"""Memory: conversations over many sessions, and questions about them.

An example has `turns` (role, content, speaker, time, session), `qa_pairs` (question, answer,
type, is_abstention, evidence) and, for systems without a memory, the transcript as `context`.
The evidence is the content of the turns that hold the answer.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any

from cbench_server.datasets.catalog.fields import as_text
from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.protocol import Aggregation, DatasetProtocol, differs, external, uses
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="memory")
_WITHHELD = ("qa_pairs", "question_type", "is_abstention", "evidence")

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
_SESSION = re.compile(r"session_\d+")
_DIA_ID = re.compile(r"D:?(\d+):0*(\d+)")
_NUMBERED_SPEAKERS = {"Speaker_1": "user", "Speaker_2": "assistant"}


def is_locomo(row: Row) -> bool:
    """Whether a row is one of `locomo10.json`, as its authors publish it."""
    return isinstance(row.get("conversation"), Mapping) and isinstance(row.get("qa"), list)


def locomo_conversation(row: Row, index: int) -> Example:
    """Make an example of a row of `locomo10.json`."""
    turns = [*_published_turns(row["conversation"])]
    said = {turn["dia_id"]: turn["content"] for turn in turns}
    given = row.get("sample_id")
    return {
        "id": index if given is None else given,
        "context": transcript(turns),
        "turns": turns,
        "qa_pairs": [*_published_pairs(row["qa"], said)],
    }


def _published_turns(conversation: Mapping[str, Any]) -> Iterator[Example]:
    roles = {conversation.get("speaker_a"): "user"}
    numbers = sorted(int(name[8:]) for name in conversation if _SESSION.fullmatch(name))
    for number in numbers:
        time = iso_time(as_text(conversation.get(f"session_{number}_date_time")))
        for turn in conversation[f"session_{number}"] or []:
            # What was on a photo is a part of what was said.
            caption = as_text(turn.get("blip_caption")).strip()
            shown = f" [shares a photo: {caption}]" if caption else ""
            if content := f"{as_text(turn.get('text')).strip()}{shown}".strip():
                yield {
                    "role": roles.get(turn["speaker"], "assistant"),
                    "content": content,
                    "speaker": turn["speaker"],
                    "time": time,
                    "session": str(number),
                    "dia_id": as_text(turn.get("dia_id")),
                }


def _published_pairs(pairs: Sequence[Row], said: Mapping[str, str]) -> Iterator[Example]:
    for pair in pairs:
        kind = _LOCOMO_TYPES.get(str(pair["category"]), str(pair["category"]))
        is_adversarial = kind == "adversarial"
        # Some name several turns in one text, "D8:6; D9:17", and some write "D:11:26" or "D30:05".
        texts = (str(text) for text in pair.get("evidence") or [])
        named = [f"D{a}:{b}" for text in texts for a, b in _DIA_ID.findall(text)]
        yield {
            "question": as_text(pair["question"]).strip(),
            "answer": "" if is_adversarial else as_text(pair.get("answer")).strip(),
            "type": kind,
            "is_abstention": is_adversarial,
            "evidence": [said[name] for name in dict.fromkeys(named) if name in said],
        }


def _locomo(row: Row, index: int) -> Example | None:
    if is_locomo(row):
        return locomo_conversation(row, index)
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
    lines = [(at, line.strip()) for text in texts for at, line in enumerate(text.splitlines())]
    named = [spoken[1].strip() for _, line in lines if (spoken := _LOCOMO_LINE.fullmatch(line))]
    # Two friends talk; "Step one: rehearse" is the second line of what one of them says.
    speakers = {name for name, _ in Counter(named).most_common(2)}
    for at, line in lines:
        spoken = _LOCOMO_LINE.fullmatch(line)
        if spoken and (speaker := spoken[1].strip()) in speakers:
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
    Part(
        repository="KhangPTT373/locomo_preprocess",
        published=("snap-research/locomo/data/locomo10.json", "snap-research/locomo/locomo10.json"),
    ),
    each(_locomo),
    protocol=DatasetProtocol(
        follows="snap-research/locomo, task_eval/evaluation.py",
        shown=("context", "turns"),
        withheld=_WITHHELD,
        extraction="The whole response is the answer.",
        evaluators=uses("answer-quality", "abstention", "locomo", "evidence-recall"),
        primary_score="locomo_f1",
        counts_abstentions=True,
        groups=("question_type",),
        aggregate=Aggregation(),
        data=differs("A copy without photo captions, unless a mirror has locomo10.json."),
    ),
    size=10,
    questions=1986,
    description="Conversations of two friends over months, with about 200 questions each.",
    licence="CC BY-NC 4.0",
    citation="Maharana et al. 2024, arXiv:2402.17753",
)


def is_longmemeval(row: Row) -> bool:
    """Whether a row is one of LongMemEval's files, as its authors publish them."""
    return "haystack_sessions" in row and "question_id" in row


def longmemeval_conversation(row: Row, index: int) -> Example | None:
    """Make an example of a row of LongMemEval's files; None for one without question or answer."""
    turns = [*_longmemeval_turns(row)]
    question = as_text(row["question"]).strip()
    given = row["answer"]
    answer = as_text(given[0] if isinstance(given, list) and given else given or "").strip()
    if not turns or not question or not answer:
        return None
    is_abstention = str(row["question_id"]).endswith("_abs")
    about = {"question": question, "answer": answer}
    evidence = [*_evidence_turns(row)]
    return {
        "id": _neutral_id(row["question_id"]) if is_abstention else row["question_id"],
        "question_id": row["question_id"],
        "context": transcript(turns),
        **about,
        "question_date": iso_time(as_text(row.get("question_date"))),
        "question_type": row["question_type"],
        "is_abstention": is_abstention,
        "turns": turns,
        "qa_pairs": [
            {
                **about,
                "type": row["question_type"],
                "is_abstention": is_abstention,
                "evidence": evidence,
                "question_id": row["question_id"],
            }
        ],
    }


def _evidence_turns(row: Row) -> Iterator[str]:
    """Yield the turns that are marked; where none is, those of the sessions that are named."""
    sessions = row["haystack_sessions"]
    ids = row.get("haystack_session_ids") or []
    named = set(row.get("answer_session_ids") or [])
    marked = [turn for session in sessions for turn in session if turn.get("has_answer")]
    if not marked:
        pairs = zip(ids, sessions, strict=False)
        marked = [turn for name, session in pairs if name in named for turn in session]
    for turn in marked:
        if content := as_text(turn["content"]).strip():
            yield content


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


def _longmemeval_protocol(config: str) -> DatasetProtocol:
    protocol = DatasetProtocol(
        follows="xiaowu0162/LongMemEval, src/evaluation/evaluate_qa.py",
        shown=("context", "question", "question_date", "turns"),
        withheld=("answer", "question_id", *_WITHHELD),
        extraction="A judge says whether the response has the answer.",
        evaluators=uses("answer-quality", "abstention", "evidence-recall"),
        groups=("question_type",),
        metric=external("The official figure is a judge's accuracy; without one f1 is counted."),
        aggregation=differs("The mean of the types' means is not the headline."),
    )
    old = differs("The files of 2024, which their authors have replaced by cleaned ones.")
    return replace(protocol, data=old) if config.endswith("-2024") else protocol


LONGMEMEVAL = _dataset(
    "longmemeval",
    {
        **{
            variant: (
                Part(
                    repository="xiaowu0162/longmemeval-cleaned",
                    config=variant,
                    file=f"longmemeval_{file}.json",
                ),
            )
            for variant, file in (("s", "s_cleaned"), ("m", "m_cleaned"), ("oracle", "oracle"))
        },
        **{
            f"{variant}-2024": (
                Part(
                    repository="xiaowu0162/longmemeval",
                    config=variant,
                    file=f"longmemeval_{variant}",
                ),
            )
            for variant in ("s", "m", "oracle")
        },
    },
    each(longmemeval_conversation),
    default_config="s",
    protocol=_longmemeval_protocol,
    description="Questions about dozens of chats with an assistant, some without an answer.",
    size=500,
    questions=500,
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
