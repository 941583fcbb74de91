"""Answers of an OpenAI-compatible server: a completion, a refusal, or nonsense."""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from cbench_server.models.answer_json import TooManyValues, read_json

# 529 is what some providers answer when they are overloaded.
RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
MAX_WAIT_S = 120.0
"""The longest wait between attempts; a server that asks for more is given up on."""
_EXCERPT = 3000
MAX_ERROR_BYTES = 64 * 1024
"""Of an answer that says what is wrong; a longer one is not read."""
OVERFLOW = "CONTEXT_OVERFLOW"
"""Why a request fails whose prompt does not fit the model's window."""
# As OpenAI, vLLM, llama.cpp, Anthropic, Google and others say it.
_OVERFLOWS = re.compile(
    r"context[_ ]length|maximum context|context (?:window|size)|exceed_context|"
    r"prompt is too long|input is too long|too many (?:input )?tokens|"
    r"input token count|reduce the length",
    re.IGNORECASE,
)
_OVERFLOW_STATUSES = frozenset({400, 413, 422})
_REASONS = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a model said."""

    content: str
    """Empty where the model gave none, as when it calls a tool."""
    usage: dict[str, Any] | None
    """As the server reported it; None where it did not."""
    finish_reason: str = ""
    """Why the model stopped, such as `stop` or `length`; empty where the server did not say."""
    model: str = ""
    """The model that answered, by the name the server gives it."""


class Trouble(Exception):
    """One attempt failed; the text goes on from the name of the endpoint."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        is_free: bool = False,
        is_away: bool = False,
    ) -> None:
        super().__init__(message)
        self.is_away = is_away
        """Whether nobody was there."""
        self.was_asked = False
        """Whether the question may have reached it all the same, before it went."""
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after
        self.is_free = is_free
        """Whether the server did not do what was asked, so that nothing is charged for it."""
        self.usage: dict[str, Any] | None = None
        """What an answer that cannot be used says of its usage."""


def parse_reply(answer: bytes) -> ChatReply:
    """Read a chat completion; null or missing content is the empty text, never "None"."""
    document = document_of(answer)
    try:
        choice = document["choices"][0]
        content = choice["message"].get("content")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise _unusable(f"answered without choices[0].message: {_told(answer)}", document) from None
    if content is not None and not isinstance(content, str):
        raise _unusable(f"answered with content that is not text: {_told(answer)}", document)
    return ChatReply(
        content or "",
        _usage(document.get("usage")),
        finish_reason=_text(choice.get("finish_reason")),
        model=_text(document.get("model")),
    )


def document_of(answer: bytes, *most: int) -> Any:
    """Read an answer as JSON, of at most so many values if that is given."""
    try:
        return read_json(answer, *most)
    except TooManyValues as error:
        raise Trouble("BAD_RESPONSE", str(error)) from None
    except (ValueError, RecursionError):
        raise not_json(answer) from None


def _unusable(message: str, document: Any) -> Trouble:
    """Say what is wrong with an answer, which may have been charged for all the same."""
    trouble = Trouble("BAD_RESPONSE", message)
    if isinstance(document, dict):
        trouble.usage = _usage(document.get("usage"))
    return trouble


def not_json(answer: bytes) -> Trouble:
    """Make of an answer, such as the page of a web site, what is wrong with it."""
    page = ", a web page" if answer.lstrip()[:1] == b"<" else ""
    return Trouble(
        "BAD_RESPONSE", f"answered with something that is not JSON: {len(answer):,} bytes{page}"
    )


def _usage(reported: Any) -> dict[str, Any] | None:
    """Give usage as reported, with the tokens that the model had in its cache by one name."""
    if not isinstance(reported, dict) or not reported:
        return None
    details = reported.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    for name in ("prompt_cache_hit_tokens", "cache_read_input_tokens"):
        cached = reported.get(name) if cached is None else cached
    if not _is_number(cached):
        return reported
    return {**reported, "cached_prompt_tokens": cached}


def add_usage(total: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Any]:
    """Add up two usages number by number; of anything else the later one stays."""
    added = dict(total)
    for name, value in usage.items():
        known = added.get(name)
        if isinstance(value, Mapping):
            added[name] = add_usage(known if isinstance(known, Mapping) else {}, value)
        elif _is_number(value) and _is_number(known):
            added[name] = known + value
        else:
            added[name] = value
    return added


def refusal(status: int, wait: str | None, answer: bytes, *, now: float) -> Trouble:
    """Make of a status other than 200, with its Retry-After header, what went wrong."""
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    seconds = retry_after(wait, now)
    asking = ""
    if seconds is not None and seconds > MAX_WAIT_S:
        asking = f" and asked to wait {seconds:.0f}s, more than the {MAX_WAIT_S:.0f}s allowed"
    is_retryable = status in RETRIED_STATUSES
    reason = _REASONS.get(status, "UNAVAILABLE" if is_retryable else f"HTTP_{status}")
    if status in _OVERFLOW_STATUSES and _OVERFLOWS.search(_excerpt(answer)):
        reason = OVERFLOW
    return Trouble(
        reason,
        f"answered {status}{phrase}{asking}{_reported(status, answer)}",
        retryable=is_retryable,
        retry_after=seconds,
        is_free=True,
    )


def retry_after(header: str | None, now: float) -> float | None:
    """Read a Retry-After header, seconds or an HTTP date; None where it says nothing."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return _seconds_until(header, now)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_until(date: str, now: float) -> float | None:
    # Imported here because only an overloaded server's date needs it.
    from calendar import timegm
    from email.utils import parsedate_tz

    parsed = parsedate_tz(date)
    if parsed is None:
        return None
    try:
        # HTTP dates are in GMT, even if they say otherwise.
        return max(0.0, timegm(parsed[:9]) - now)
    except (ValueError, OverflowError):
        return None


def _reported(status: int, answer: bytes) -> str:
    """Return the error that a server of models reports, to go on a sentence; else nothing."""
    said = _error_in(answer) if 400 <= status < 500 else ""
    return f": {said}" if said else ""


def _told(answer: bytes) -> str:
    return _error_in(answer) or f"{len(answer):,} bytes"


def _error_in(answer: bytes) -> str:
    """Return the `error` of an answer; empty if it has none.

    Nothing else of an answer is told: it may come from a service that was never meant to be
    asked, and hold what only its own users may read.
    """
    try:
        document = json.loads(answer[:MAX_ERROR_BYTES])
        # As most servers say it, or as vLLM does.
        error = document if document.get("object") == "error" else document["error"]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return ""
    if isinstance(error, dict):
        error = error.get("message") or error.get("type") or error.get("code")
    return f'"{" ".join(str(error)[:_EXCERPT].split())}"' if error else ""


def _excerpt(answer: bytes) -> str:
    return " ".join(answer[:_EXCERPT].decode("utf-8", "replace").split())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cause_of(error: BaseException) -> str:
    """Return the innermost reason, which says more than that all attempts failed."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    if isinstance(error, OSError) and error.errno:
        # asyncio puts its own words in the place of the system's.
        return os.strerror(error.errno) if error.errno > 0 else str(error.strerror)
    return str(error) or type(error).__name__


def is_document(answer: bytes) -> bool:
    """Whether it is a JSON object, as a list of models is, and not the page of a web site."""
    try:
        return isinstance(read_json(answer), dict)
    except (ValueError, RecursionError):
        return False
