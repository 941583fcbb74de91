"""The proof of a sandbox passes where one holds, and fails where a tier says more than is true."""

from collections.abc import Iterator

import pytest

from cbench_server.sandbox.client import Sandbox, SandboxUnavailable, shared_sandbox
from cbench_server.sandbox.proof import prove
from cbench_server.sandbox.tiers import PROCESS, Tier

LIES = {
    "the network": PROCESS._replace(network="none"),
    "files": PROCESS._replace(filesystem="private"),
    "processes": PROCESS._replace(is_split_sound=True),
}


@pytest.fixture
def lying(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    tier: Tier = LIES[request.param]
    sandbox = Sandbox((tier,))
    yield sandbox
    sandbox.close()


@pytest.mark.parametrize("policy", ["strict", "off"])
def test_what_holds_is_proved(policy: str) -> None:
    assert prove(shared_sandbox(policy)).name == ("process" if policy == "off" else "namespaces")


@pytest.mark.parametrize(("lying", "reached"), [(each, each) for each in LIES], indirect=["lying"])
def test_a_tier_that_promises_too_much_is_found_out(lying: Sandbox, reached: str) -> None:
    with pytest.raises(SandboxUnavailable, match=f"a program reached {reached} of this machine"):
        prove(lying)
