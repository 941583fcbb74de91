"""Errors of the client library, said in flags."""

import pytest

from cbench_client.errors import ADVICE, ClientError, Refused, Unreachable
from cbench_server.cli.exits import DAEMON_ADVICE, FAILED, SYSTEM_ADVICE, explain
from cbench_server.rpc.advice import FIELD_ADVICE, KEY, in_fields


@pytest.mark.parametrize("own", [DAEMON_ADVICE, SYSTEM_ADVICE, FIELD_ADVICE])
def test_every_advice_of_the_client_is_given_in_flags_or_fields(own: dict[str, str]) -> None:
    assert own.keys() == ADVICE.keys()
    assert not [text for text in own.values() if "tls=" in text or "token=" in text]


@pytest.mark.parametrize("code", ADVICE)
def test_advice_is_about_the_daemon_or_about_the_system_it_could_not_reach(code: str) -> None:
    unreachable = Unreachable("h:1 is locked.", advice=code)
    assert str(unreachable) == f"h:1 is locked. {ADVICE[code]}"
    assert explain(unreachable) == (FAILED, f"h:1 is locked. {DAEMON_ADVICE[code]}")
    refused = Refused(str(unreachable), code="FAILED_PRECONDITION", reason="SYSTEM_UNREACHABLE")
    assert str(refused) == str(unreachable)
    assert explain(refused) == (FAILED, f"h:1 is locked. {SYSTEM_ADVICE[code]}")
    told, found = in_fields(str(unreachable))
    assert (told, found) == (f"h:1 is locked. {FIELD_ADVICE[code]}", code)
    of_daemon = Refused(told, code="FAILED_PRECONDITION", metadata={KEY: code})
    assert explain(of_daemon) == (FAILED, f"h:1 is locked. {SYSTEM_ADVICE[code]}")


def test_advice_of_a_newer_daemon_is_shown_as_it_is() -> None:
    refused = Refused("Do this.", code="FAILED_PRECONDITION", metadata={KEY: "NEWER"})
    assert explain(refused) == (FAILED, "Do this.")


def test_an_error_without_advice_is_shown_as_it_is() -> None:
    assert explain(ClientError("h:1 is gone.")) == (FAILED, "h:1 is gone.")
