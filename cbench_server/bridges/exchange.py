"""The JSON of a bridge: one object per call, and one for its answer."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cbench_client import RemoteFailure

Message = dict[str, Any]

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_SHOWN = 200
_NAMED = 60


class Exchange(Protocol):
    """A way to have requests answered."""

    async def ask(self, request: Message) -> Message:
        """Return the answer to a request, which gets its `id` here; raise RemoteFailure."""
        ...

    def close(self) -> None:
        """Let go of whatever answers."""
        ...


def encoded(request: Message) -> bytes:
    """Encode a request as one line."""
    try:
        return json.dumps(request, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise RemoteFailure(
            f"the example cannot be sent as JSON: {error}", reason="UNENCODABLE_VALUE"
        ) from error


def decoded(text: bytes, who: str) -> Any:
    """Decode what was answered."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RemoteFailure(
            f"{who} answered what is not JSON ({error}): {shown(text)}", reason="BAD_RETURN"
        ) from error


def checked(answer: Any, who: str) -> Message:
    """Return an answer; raise the failure that it tells of, or its being none."""
    if not isinstance(answer, Mapping):
        raise RemoteFailure(
            f"{who} answered {shown(json.dumps(answer).encode())}, which is not a JSON object",
            reason="BAD_RETURN",
        )
    error = answer.get("error")
    if error is None:
        return dict(answer)
    delay = answer.get("retry_delay")
    raise RemoteFailure(
        str(error),
        reason=str(answer.get("reason") or "EXCEPTION"),
        retryable=answer.get("retryable") is True,
        retry_delay=delay if isinstance(delay, int | float) else None,
    )


def id_of(answer: Any) -> int | None:
    """Return the id of an answer, which some languages print as 5.0; None if it has none."""
    found = answer.get("id") if isinstance(answer, dict) else None
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def shown(text: bytes) -> str:
    """Return the beginning of a text, to be quoted."""
    words = text[: _SHOWN * 4].decode(errors="replace").strip()
    return repr(words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…")


def called(words: Sequence[str]) -> str:
    """Return a command as it is named in messages."""
    text = " ".join(shlex.join(words).split())
    return f"`{text if len(text) <= _NAMED else text[:_NAMED] + '…'}`"
