"""Generator of the embedded dataset long-notes, from the templates beside this file.

A template file holds one kind of document: a header, one opening, a pool of
entries and a closing, with the questions each of them can answer. A document
takes some of the entries and fills each slot with a value it has not used
yet, so other names, dates and numbers of the same type surround every answer.
The same templates always give the same file.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

_TEMPLATES = Path(__file__).parent
_TARGET = _TEMPLATES.with_name("long-notes.jsonl")

# {person} draws a value, {person:clerk} another one, {@person} one for the
# whole document, {12-19} a number. "a " before a slot becomes "an " where needed.
_SLOT = re.compile(r"(\b[Aa] )?\{(@?)([a-z]+|\d+-\d+)(:\w+)?\}")


@dataclass(frozen=True)
class Question:
    text: str
    references: list[str]


@dataclass(frozen=True)
class Block:
    label: str
    text: str
    questions: list[Question]


@dataclass(frozen=True)
class Template:
    kind: str
    documents: int
    fewest_entries: int
    most_entries: int
    is_order_kept: bool
    step: str
    blocks: list[Block]

    def labelled(self, prefix: str) -> list[Block]:
        return [block for block in self.blocks if block.label.startswith(prefix)]


def read_template(path: Path) -> Template:
    head, *parts = re.split(r"(?m)^\[(?=[a-z ]+\]$)", path.read_text(encoding="utf-8"))
    fields = dict(line.split(": ") for line in head.split("\n") if line)
    fewest, most = map(int, fields["entries"].split("-"))
    return Template(
        kind=fields["kind"],
        documents=int(fields["documents"]),
        fewest_entries=fewest,
        most_entries=most,
        is_order_kept=fields["order"] == "kept",
        step=fields["step"],
        blocks=[_read_block(part) for part in parts],
    )


def _read_block(part: str) -> Block:
    label, *lines = part.strip().split("\n")
    questions = [line[2:].split(" | ") for line in lines if line.startswith("? ")]
    return Block(
        label=label.removesuffix("]"),
        text=" ".join(line for line in lines if not line.startswith("? ")),
        questions=[Question(text, references) for text, *references in questions],
    )


def read_vocabulary() -> dict[str, list[str]]:
    lines = (_TEMPLATES / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    words = {name: values.split(", ") for name, values in (line.split(": ") for line in lines)}
    return words | {"person": words["man"] + words["woman"]}


class Filler:
    """Fills the slots of one document, each with a different value."""

    def __init__(self, seed: str, vocabulary: dict[str, list[str]], step: str) -> None:
        # Of all methods, only random() promises the same numbers in every Python.
        self._random = random.Random(seed).random
        self._vocabulary = vocabulary
        self._unit, span = step.split(" ")
        self._least, self._most = map(int, span.split("-"))
        self._used: set[str] = set()
        self._document: dict[str, str] = {}
        self._entry: dict[str, str] = {}
        self._at = self.between(1200, 1300) if self._unit == "minutes" else self.between(1768, 1790)
        self._day = date(2001, 1, 1) + timedelta(days=self.between(0, 200))
        self._count = 0

    def between(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def pick(self, values: list[str]) -> str:
        return values[self.between(0, len(values) - 1)]

    def sample(self, blocks: list[Block], count: int) -> list[Block]:
        rest = list(blocks)
        return [rest.pop(self.between(0, len(rest) - 1)) for _ in range(count)]

    def next_block(self) -> None:
        """Forget the slots of the last block and move its date, time or number on."""
        step = self.between(self._least, self._most)
        self._at += step
        self._day += timedelta(days=step)
        self._count += step
        self._entry = {"when": self._when()}

    def _when(self) -> str:
        return {
            "days": _day_and_month(self._day),
            "minutes": f"{self._at // 60 % 24:02}:{self._at % 60:02}",
            "years": str(self._at),
            "stations": f"Station {self._count - 1}",
            "lots": f"Lot {self._count}",
        }.get(self._unit, str(self._count - 1))

    def fill(self, text: str) -> str:
        return _SLOT.sub(self._value_of, text)

    def _value_of(self, slot: re.Match[str]) -> str:
        article, scope, name, tag = slot.groups(default="")
        values = self._document if scope else self._entry
        if name + tag not in values:
            values[name + tag] = self._draw(name)
        value = values[name + tag]
        if article and value[0] in "aeiou":
            article = article[0] + "n "
        return article + value

    def _draw(self, name: str) -> str:
        if name == "date":
            # Later than every date before it: a next meeting comes after the last.
            self._day += timedelta(days=self.between(50, 110))
            choices = [_day_and_month(self._day)]
        elif name == "clock":
            choices = [f"{hour}:{minute:02}" for hour in (17, 18, 19) for minute in range(5, 60, 5)]
        elif "-" in name:
            low, high = map(int, name.split("-"))
            choices = [f"{n:,}" if n >= 10_000 else str(n) for n in range(low, high + 1)]
        else:
            choices = self._vocabulary[name]
        value = self.pick([choice for choice in choices if choice not in self._used] or choices)
        self._used.add(value)
        return value


def _day_and_month(day: date) -> str:
    return f"{day.day} {day:%B}"


def draft(template: Template, filler: Filler) -> tuple[str, list[Question]]:
    """Return the text of one document and the questions it can answer."""
    always = template.labelled("entry always")
    optional = [block for block in template.labelled("entry") if block not in always]
    count = filler.between(template.fewest_entries, template.most_entries)
    entries = filler.sample(optional, count - len(always)) + always
    if template.is_order_kept:
        entries.sort(key=template.blocks.index)
    paragraphs, questions = [], []
    for block in template.labelled("opening") + entries + template.labelled("closing"):
        filler.next_block()
        paragraphs.append(_with_capitals(filler.fill(block.text)))
        questions += [
            Question(filler.fill(q.text), [filler.fill(r) for r in q.references])
            for q in block.questions
        ]
    return "\n\n".join(paragraphs), questions


def _with_capitals(text: str) -> str:
    return re.sub(r"(^|[.?!] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def normalise(text: str) -> str:
    """Normalise as the answer-quality evaluator does."""
    text = re.sub(r"[!-/:-@\[-`{-~]", "", text.lower())
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def answerable(context: str, questions: list[Question], third: int) -> list[Question]:
    """Keep the questions whose answer occurs once in the context, and in that third of it."""
    plain = normalise(context)
    kept = []
    for question in questions:
        answer, *others = question.references
        is_there = context.count(answer) == 1 and plain.count(normalise(answer)) == 1
        if is_there and context.index(answer) * 3 // len(context) == third:
            # An alternative that also occurs elsewhere would count as kept when the answer is lost.
            sound = [other for other in others if plain.count(normalise(other)) <= 1]
            kept.append(Question(question.text, [answer, *sound]))
    return kept


def examples() -> Iterator[dict[str, object]]:
    vocabulary = read_vocabulary()
    number = 0
    for path in sorted(_TEMPLATES.glob("*.txt")):
        if path.name == "vocabulary.txt":
            continue
        template = read_template(path)
        asked: set[str] = set()
        for copy in range(template.documents):
            filler = Filler(f"{template.kind} {copy}", vocabulary, template.step)
            context, questions = draft(template, filler)
            number += 1
            fitting = answerable(context, questions, number % 3)
            # Documents of one kind ask about different things as long as they can.
            fresh = [q for q in fitting if q.text not in asked] or fitting
            chosen = fresh[filler.between(0, len(fresh) - 1)]
            asked.add(chosen.text)
            example: dict[str, object] = {
                "id": f"long-notes-{number:03}",
                "kind": template.kind,
                "context": context,
                "question": chosen.text,
                "answer": chosen.references[0],
            }
            if len(chosen.references) > 1:
                example["answers"] = chosen.references
            yield example


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the embedded dataset long-notes.")
    parser.add_argument("--to", type=Path, default=_TARGET, help="the file to write")
    target: Path = parser.parse_args().to
    lines = [json.dumps(example, ensure_ascii=False) + "\n" for example in examples()]
    target.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
