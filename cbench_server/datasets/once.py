"""Texts that stand in an example once: a question that is the context itself is left out.

What a system compresses is the context. A second copy of it would go round the
system: a reader would see it whole, and its tokens would be counted twice.
"""

from collections.abc import Mapping

from cbench_server.types import Example


def once(example: Example) -> Example:
    """Return an example without a question that repeats its context."""
    if not isinstance(example, Mapping):
        return example  # Whoever checks examples says what is wrong with it.
    context, question = example.get("context"), example.get("question")
    if not isinstance(context, str) or not isinstance(question, str) or not context.strip():
        return example
    if context is not question and context.strip() != question.strip():
        return example
    return {name: value for name, value in example.items() if name != "question"}
