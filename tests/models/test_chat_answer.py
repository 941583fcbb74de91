"""What servers answer is read for what it means."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.models.chat_answer import Trouble, add_usage, parse_reply, refusal, retry_after

NOON = 1_445_428_800.0  # Wed, 21 Oct 2015 12:00:00 GMT


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("-3", None),
        ("inf", None),
        ("nan", None),
        ("Wed, 21 Oct 2015 12:00:30 GMT", 30.0),
        ("Wednesday, 21-Oct-15 12:00:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 11:00:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 12:00:30", 30.0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOON) == seconds


@given(st.text())
def test_no_retry_after_header_breaks_the_client(header: str) -> None:
    seconds = retry_after(header, NOON)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    ("message", "content"),
    [({"content": "Paris"}, "Paris"), ({"content": None, "tool_calls": [{}]}, ""), ({}, "")],
    ids=["text", "null", "missing"],
)
def test_content_is_text_and_never_the_word_none(message: dict[str, object], content: str) -> None:
    answer = json.dumps({"choices": [{"message": message}]}).encode()
    assert parse_reply(answer).content == content


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>busy</html>",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"null",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": "abc"}',
        b'{"choices": [{"message": "hi"}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
    ],
)
def test_nonsense_is_a_bad_response_that_is_not_asked_for_again(answer: bytes) -> None:
    with pytest.raises(Trouble, match="answered") as caught:
        parse_reply(answer)
    assert (caught.value.reason, caught.value.retryable) == ("BAD_RESPONSE", False)


@pytest.mark.parametrize(
    ("status", "reason", "retryable"),
    [
        (401, "UNAUTHENTICATED", False),
        (403, "PERMISSION_DENIED", False),
        (404, "HTTP_404", False),
        (408, "UNAVAILABLE", True),
        (409, "UNAVAILABLE", True),
        (429, "RESOURCE_EXHAUSTED", True),
        (500, "UNAVAILABLE", True),
        (501, "HTTP_501", False),
        (529, "UNAVAILABLE", True),
    ],
)
def test_a_status_says_whether_asking_again_may_help(
    status: int, reason: str, retryable: bool
) -> None:
    trouble = refusal(status, None, b'{"error": "why"}', now=NOON)
    assert (trouble.reason, trouble.retryable) == (reason, retryable)
    assert str(status) in str(trouble)
    assert ("why" in str(trouble)) == (status < 500)


def test_usage_adds_up_number_by_number() -> None:
    first = {"total_tokens": 3, "details": {"cached": 1}, "tier": "a", "cost": None}
    second = {"total_tokens": 4, "details": {"cached": 2, "audio": 5}, "tier": "b", "cost": 0.5}
    assert add_usage(first, second) == {
        "total_tokens": 7,
        "details": {"cached": 3, "audio": 5},
        "tier": "b",
        "cost": 0.5,
    }
