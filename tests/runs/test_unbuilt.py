"""What the contract has and the daemon does not do yet is refused by name, not left undone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_server.daemon.embedded import embedded


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchClient]:
    home: Path = tmp_path_factory.mktemp("home")
    with embedded(home=str(home)) as target, BenchClient(target) as connected:
        yield connected


@pytest.mark.parametrize(
    "fields",
    [
        {"budget_usd": 1.0},
        {"anchors": True},
        {"group_by": ["subject"]},
        {"reader": {"base_url": "http://127.0.0.1:9", "price": {"input_usd": 1.0}}},
        {"systems": [{"builtin": "identity", "role": "SYSTEM_ROLE_DIRECT"}]},
        {"systems": [{"builtin": "identity", "swept_option": "ratio"}]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_it_is_refused_by_name(client: BenchClient, fields: dict[str, Any]) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}], **fields}
    with pytest.raises(Refused, match="does not carry that out yet"):
        client.start(spec)
