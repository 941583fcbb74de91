"""A run says on what machine, under what load and with what versions it was made."""

import os

from cbench_client import BenchClient
from cbench_server import evaluate
from cbench_server.daemon.embedded import embedded
from cbench_server.rpc.runs import run_from_proto
from tests.e2e.following import follow

SPEC = {
    "systems": [{"builtin": "identity"}],
    "datasets": [{"name": "mini-qa", "max_examples": 1}],
    "anchors": False,
}


def test_both_doors_tell_the_same(tmp_path: object) -> None:
    class Same:
        name = "same"

        def process(self, example: dict[str, object]) -> dict[str, object]:
            return example

    here = evaluate([Same()], "mini-qa", max_examples=1, progress=False).config
    with embedded(home=str(tmp_path)) as target, BenchClient(target) as client:
        run_id = follow(client.evaluate(SPEC)).finished.run_id
        there = run_from_proto(client.get(run_id)).config
    for config in (here, there):
        assert config["machine"]["cores"] == os.cpu_count()
        assert config["machine"]["memory_bytes"] > 1 << 28
        assert len(config["machine"]["load"]) == 3
        assert config["packages"].keys() >= {"grpcio", "protobuf", "tiktoken"}
    for name in ("cbench_version", "python_version", "platform", "packages"):
        assert here[name] == there[name]
