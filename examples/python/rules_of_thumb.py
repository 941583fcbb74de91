"""A responder without a model: it answers every kind of question by a simple rule.

What it scores is what a model should beat; it also shows what each evaluator looks at.

Start it with: python examples/python/rules_of_thumb.py 127.0.0.1:50061
"""

import math
import re
import sys
from fractions import Fraction
from typing import Any

from cbench_client import serve


class RulesOfThumb:
    """Responds by the first rule that fits the example."""

    name = "rules-of-thumb"
    version = "1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": respond(example)}


def respond(example: dict[str, Any]) -> str:
    """Choose the rule by the fields of the example and the words of its question."""
    context = example["context"]
    # Where the context is the question, there is no other.
    question = example.get("question", context)
    if choices := example.get("choices"):
        return f"The answer is {pick(choices, context + question)}."
    if function := re.search(r"(?:def|function) (\w+)\(", question):
        return program(function[1])
    if context == question:
        return compute(question) or follow(question)
    if question.startswith("Summarize"):
        return " ".join(sentences(context)[:2])
    if "entail" in question or not question.endswith("?"):
        return label(context, question.rpartition("\n")[2])
    return max(sentences(context), key=lambda sentence: len(words(sentence) & words(question)))


def pick(choices: list[str], text: str) -> str:
    """Pick the choice with most words that the text has; the longest of equals."""
    known = words(text)
    ranked = [(len(words(choice) & known), len(choice)) for choice in choices]
    return "ABCDEFGHIJ"[ranked.index(max(ranked))]


def program(name: str) -> str:
    """Write a function that leaves the work to one of `math` that has a similar name."""
    known = [each for each in dir(math) if len(each) > 2 and name.startswith(each)]
    if not known:
        return f"def {name}(*given):\n    return given[0]\n"
    call = f"math.{max(known, key=len)}"
    return (
        f"import math\n\ndef {name}(*given):\n"
        f"    return {call}(*given[0]) if isinstance(given[0], list) else {call}(*given)\n"
    )


def compute(question: str) -> str:
    """Take the first two numbers of the question, and add, subtract or multiply them."""
    numbers = [Fraction(each) for each in re.findall(r"\d+(?:\.\d+)?", question)[:2]]
    if len(numbers) < 2:
        return ""
    left, right = numbers
    if "together" in question:
        return f"The answer is {left + right}."
    if words(question) & {"left", "longer", "fallen", "lost"}:
        return f"The answer is {left - right}."
    return f"The answer is {left * right}."


def follow(request: str) -> str:
    """Repeat the words of the request in the form that it asks for."""
    quoted = re.findall('"(.+?)"', request)
    text = " ".join(["Here you are:", *quoted, request.replace('"', "")])
    if "commas" in request:
        text = text.replace(",", "")
    if "lower case" in request:
        text = text.lower()
    if "capital letters" in request:
        text = text.upper()
    if "quotation marks" in request:
        text = f'"{text}"'
    if "P.S." in request:
        text += "\n\nP.S. That is all."
    return text


def label(premise: str, statement: str) -> str:
    """Judge a statement by how many of its words the premise has, and by its absolute words."""
    if words(statement) & {"all", "everywhere", "never", "everybody", "same"}:
        return "contradiction"
    shared = words(statement) & words(premise)
    return "entailment" if len(shared) > 0.6 * len(words(statement)) else "not mentioned"


def sentences(text: str) -> list[str]:
    """Split at the ends of sentences and lines."""
    return re.findall(r"\S.*?(?:[.!?](?=\s)|$)", text, re.M)


def words(text: str) -> set[str]:
    """Return the different words, in lower case."""
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    serve(RulesOfThumb(), *sys.argv[1:])
