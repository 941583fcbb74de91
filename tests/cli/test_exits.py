"""Errors of the client library, said in flags."""

import pytest

from cbench_client.errors import ADVICE, ClientError, Refused, Unreachable
from cbench_server.cli.exits import DAEMON_ADVICE, FAILED, SYSTEM_ADVICE, explain


@pytest.mark.parametrize("flags", [DAEMON_ADVICE, SYSTEM_ADVICE], ids=["daemon", "system"])
def test_every_advice_of_the_client_is_given_in_flags(flags: dict[str, str]) -> None:
    assert flags.keys() == ADVICE.keys()
    assert not [text for text in flags.values() if "tls=" in text or "token=" in text]


@pytest.mark.parametrize("code", ADVICE)
def test_advice_is_about_the_daemon_or_about_the_system_it_could_not_reach(code: str) -> None:
    unreachable = Unreachable("h:1 is locked.", advice=code)
    assert str(unreachable) == f"h:1 is locked. {ADVICE[code]}"
    assert explain(unreachable) == (FAILED, f"h:1 is locked. {DAEMON_ADVICE[code]}")
    refused = Refused(str(unreachable), code="FAILED_PRECONDITION", reason="SYSTEM_UNREACHABLE")
    assert str(refused) == str(unreachable)
    assert explain(refused) == (FAILED, f"h:1 is locked. {SYSTEM_ADVICE[code]}")


def test_an_error_without_advice_is_shown_as_it_is() -> None:
    assert explain(ClientError("h:1 is gone.")) == (FAILED, "h:1 is gone.")
