"""The user's own key, and names that systems give themselves."""

import pytest

from cbench_server.errors import InvalidSpec
from cbench_server.rpc.credentials import Credentials
from cbench_server.rpc.finder import is_system_name


@pytest.mark.parametrize(
    ("address", "is_sent"),
    [
        ("https://models.example/v1", True),
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000/v1", True),
        ("http://[::1]:8000", True),
        ("http://models.example/v1", False),
        ("http://203.0.113.7:8000", False),
        ("http://localhost.example:8000", False),
    ],
)
def test_the_users_own_key_does_not_travel_in_the_clear(
    monkeypatch: pytest.MonkeyPatch, address: str, is_sent: bool
) -> None:
    monkeypatch.setenv("OWN_KEY", "a-secret-key")
    credentials = Credentials(default_env="OWN_KEY")
    if is_sent:
        assert credentials.secret("", address) == "a-secret-key"
        return
    with pytest.raises(InvalidSpec, match=r"unencrypted.*OWN_KEY= cbench") as refused:
        credentials.secret("", address)
    assert "a-secret-key" not in str(refused.value)
    monkeypatch.delenv("OWN_KEY")
    assert credentials.secret("", address) is None


@pytest.mark.parametrize("name", ["", "a/b", "x" * 201, "a\nb", "a\x1b]0;b\x07"])
def test_a_dialled_system_has_no_name_that_an_attached_one_could_not_have(name: str) -> None:
    assert not is_system_name(name)
    assert is_system_name("sumy LSA, é")
