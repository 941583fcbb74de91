"""Numbers as lm-evaluation-harness takes them from solutions of GSM8K and MGSM."""

import re
import string

_MARKED = re.compile(r"#### (-?[0-9.,]+)")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ANY = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+")


def strict_match(response: str, reference: str) -> bool:
    """Whether the first number after `#### ` is the reference."""
    found = _MARKED.search(response)
    return found is not None and _bare(found[1]) == _bare(reference)


def flexible_match(response: str, reference: str) -> bool:
    """Whether the last number anywhere is the reference."""
    found = _ANY.findall(response)
    return bool(found) and _bare(found[-1]) == _bare(reference)


def unpunctuated_match(response: str, reference: str) -> bool:
    """Whether the last number is the reference, digit by digit: MGSM's, in any language's form."""
    found = _ANY.findall(response)
    return bool(found) and _digits(found[-1]) == _digits(reference)


def _digits(text: str) -> str:
    return text.strip().translate(_DELETE_PUNCTUATION)


def _bare(text: str) -> str:
    """Return a number without commas, dollars, a full stop, and what leads up to `#### `."""
    text = text.replace(",", "").replace("$", "").rpartition("#### ")[2].lower()
    return text[:-1] if text.endswith(".") else text
