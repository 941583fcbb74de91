"""What judges read of a pair, as text."""

from cbench_server.evaluators.references import references
from cbench_server.thinking import strip_thinking
from cbench_server.types import Example


def response_text(processed: Example, *, strip: bool) -> str:
    """Return the response, without thinking blocks if `strip`; none at all is an empty one."""
    response = processed.get("response")
    text = "" if response is None else str(response)
    return strip_thinking(text) if strip else text


def reference_text(original: Example) -> str:
    """Return the accepted answers, one a line where there are several; empty if there is none."""
    found = [text for text in references(original) if text.strip()]
    if len(found) > 1:
        return "\n".join(f"- {text}" for text in found)
    return found[0] if found else ""
