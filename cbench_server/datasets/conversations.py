"""Conversations for a memory run: one example per question.

The first question of a conversation carries its `turns`, so that they are
stored once; the others follow without them. Each has its own short `context`,
so that an answer can be scored, now and later, without the conversation.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from cbench_server.datasets.catalog.memory import transcript
from cbench_server.errors import BadDataset, NothingMatches
from cbench_server.texts.answers import normalize_answer, references
from cbench_server.types import Example

NO_ANSWER = "The conversation does not say."
_EXCERPT_CHARACTERS = 3000
# Other fields that a question may carry; the rest stays with the dataset.
_CARRIED = ("answers", "previous_answer", "evidence", "question_id")
_TEXTS = ("role", "speaker", "time", "session")


def questions(
    conversations: Iterator[Example],
    *,
    label: str,
    where: Mapping[str, str] | None = None,
    question_types: Collection[str] = (),
    max_conversations: int | None = None,
    read_again: Callable[[], Iterator[Example]] | None = None,
) -> Iterator[Example]:
    """Yield the questions of the chosen conversations, one conversation after another.

    `where` and `question_types` apply before `max_conversations`, so that a cap of 5
    gives 5 conversations that have questions. A type that no question has is refused:
    before the first question where the conversations can be `read_again`, else after the last.
    """
    types = _Types(question_types, label)

    def chosen(source: Iterator[Example]) -> Iterator[list[Example]]:
        for position, conversation in enumerate(source):
            if where and any(str(conversation.get(name)) != text for name, text in where.items()):
                continue
            if kept := types.choose(questions_of(conversation, position, label)):
                yield _with_turns(kept, conversation)
        types.check()

    def look_for_all(source: Iterator[list[Example]]) -> None:
        # Reads no further than the last type that is met, which most often is soon.
        while types.unmet and next(source, None) is not None:
            pass

    if read_again is not None:
        look_for_all(chosen(read_again()))
    groups = chosen(conversations)
    for group in islice(groups, max_conversations):
        yield from group
    look_for_all(groups)


class _Types:
    """The types of question that are wanted, and those that were met."""

    def __init__(self, names: Collection[str], label: str) -> None:
        self._wanted = frozenset(map(_plain, names))
        self.unmet = {_plain(name): name for name in names}
        self._met: set[str] = set()
        self._label = label

    def choose(self, group: list[Example]) -> list[Example]:
        """Return those questions of a conversation that are wanted."""
        if not self._wanted:
            return group
        self._met.update(each["question_type"] for each in group)
        kept = [each for each in group if _kinds(each) & self._wanted]
        for kind in {kind for each in kept for kind in _kinds(each)}:
            self.unmet.pop(kind, None)
        return kept

    def check(self) -> None:
        """Refuse types that no question has."""
        if self._met and self.unmet:
            raise NothingMatches(
                f'dataset "{self._label}" has no questions of type '
                f"{', '.join(self.unmet.values())}; it has: {', '.join(sorted(self._met))}, and "
                "abstention for those without an answer"
            )


def _kinds(question: Example) -> set[str]:
    """Return the names that a question may be asked for by."""
    kinds = {_plain(question["question_type"])}
    return kinds | {"abstention"} if question.get("is_abstention") else kinds


def _plain(question_type: str) -> str:
    """Write a type as it is compared: `_` and `-` are the same, and so are cases."""
    return question_type.replace("_", "-").casefold()


def transcripts(conversations: Iterator[Example], *, label: str) -> Iterator[Example]:
    """Yield the questions for systems without a memory: each has the whole conversation as its
    context.
    """
    for position, conversation in enumerate(conversations):
        found = questions_of(conversation, position, label)
        context = transcript(_typed(conversation["turns"]))
        for question in found:
            # The count belongs to questions whose context is an excerpt.
            del question["turn_count"]
            yield {**question, "context": context}


def questions_of(conversation: Example, position: int, label: str) -> list[Example]:
    """Make an example of each question about a conversation, or raise BadDataset."""
    where = f'dataset "{label}", position {position}'
    turns = _checked_turns(conversation, where)
    pairs = conversation.get("qa_pairs")
    if not isinstance(pairs, list) or not pairs:
        raise BadDataset(f'{where}: there are no "qa_pairs"; a memory run needs questions to ask')
    given = conversation.get("id")
    name = str(position if given is None else given)
    excerpts = _Excerpts(turns)
    return [
        _question(conversation, pair, f"{name}_{number}", name, len(turns), excerpts, where)
        for number, pair in enumerate(pairs)
    ]


def _question(
    conversation: Example,
    pair: Any,
    question_id: str,
    name: str,
    turn_count: int,
    excerpts: "_Excerpts",
    where: str,
) -> Example:
    if not isinstance(pair, Mapping) or not isinstance(pair.get("question"), str):
        raise BadDataset(f'{where}: an entry of "qa_pairs" has no "question" in text: {pair!r:.80}')
    example: Example = {
        "id": question_id,
        "question": pair["question"],
        **{field: pair[field] for field in _CARRIED if field in pair},
        "question_type": str(pair.get("type") or pair.get("question_type") or "unknown"),
        "group": name,
        "turn_count": turn_count,
    }
    if asked_at := pair.get("asked_at") or conversation.get("question_date"):
        example["asked_at"] = str(asked_at)
    answer = pair.get("answer")
    if pair.get("is_abstention"):
        example["is_abstention"] = True
        example["answer"] = answer or NO_ANSWER
    elif answer is not None:
        example["answer"] = answer
    example["context"] = excerpts.about(references(example))
    return example


def _with_turns(group: list[Example], conversation: Example) -> list[Example]:
    first = {**group[0], "turns": _typed(conversation["turns"]), "question_count": len(group)}
    return [first, *group[1:]]


def _typed(turns: Sequence[Mapping[str, Any]]) -> list[Example]:
    """Give each turn a role, and turn numbers that name something, such as sessions, into text."""
    return [
        {
            "role": "user",
            **{
                name: str(value) if name in _TEXTS else value
                for name, value in turn.items()
                if value is not None
            },
        }
        for turn in turns
    ]


def _checked_turns(conversation: Example, where: str) -> list[Example]:
    turns = conversation.get("turns")
    if not isinstance(turns, list) or not turns:
        raise BadDataset(
            f'{where}: there are no "turns"; a memory run needs conversations with "turns" and '
            '"qa_pairs". For other examples use: cbench run'
        )
    for number, turn in enumerate(turns):
        if not isinstance(turn, Mapping) or not isinstance(turn.get("content"), str):
            raise BadDataset(f'{where}: turn {number} has no "content" in text: {turn!r:.80}')
    return _typed(turns)


class _Excerpts:
    """Cuts the `context` that evaluators read out of one conversation."""

    def __init__(self, turns: list[Example]) -> None:
        self._lines = [transcript([turn]) for turn in turns]
        self._phrases = [f" {normalize_answer(line)} " for line in self._lines]

    def about(self, answers: Sequence[str]) -> str:
        """Return the turns that contain an answer, else the latest, at most 3,000 characters.

        One turn is always kept, even if it is longer.
        """
        wanted = [f" {phrase} " for answer in answers if (phrase := normalize_answer(answer))]
        telling = [
            line
            for line, phrase in zip(self._lines, self._phrases, strict=True)
            if any(each in phrase for each in wanted)
        ]
        kept: list[str] = []
        left = _EXCERPT_CHARACTERS
        for line in reversed(telling or self._lines):
            left -= len(line) + 1
            if left < 0 and kept:
                break
            kept.append(line)
        return "\n".join(reversed(kept))
