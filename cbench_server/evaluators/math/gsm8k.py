"""Numbers as lm-evaluation-harness takes them from GSM8K solutions: the marked one, or the last."""

import re

_MARKED = re.compile(r"#### (-?[0-9.,]+)")
_ANY = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+")


def strict_match(response: str, reference: str) -> bool:
    """Whether the first number after `#### ` is the reference."""
    found = _MARKED.search(response)
    return found is not None and _bare(found[1]) == _bare(reference)


def flexible_match(response: str, reference: str) -> bool:
    """Whether the last number anywhere is the reference."""
    found = _ANY.findall(response)
    return bool(found) and _bare(found[-1]) == _bare(reference)


def _bare(text: str) -> str:
    """Return a number without commas, dollars, a full stop, and what leads up to `#### `."""
    text = text.replace(",", "").replace("$", "").rpartition("#### ")[2].lower()
    return text[:-1] if text.endswith(".") else text
