"""The daemon of benchmarks/sdks.py: `unary_daemon.py HOME`.

A daemon streams to every system that takes streams, and every SDK does. So that both ways can
be measured on one daemon, this one treats systems at `localhost` as ones that do not.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

from cbench_client.remote import connection
from cbench_server.daemon import main

describe = connection.SystemConnection.describe


async def describe_without_streams(
    self: connection.SystemConnection, timeout: float = 5.0
) -> Sequence[connection.SystemDescription]:
    """Describe, and forget that a system at localhost takes streams."""
    described = await describe(self, timeout)
    if not self.target.startswith("localhost:"):
        return described
    self._streaming = frozenset()
    return [replace(each, streams=False) for each in described]


if __name__ == "__main__":
    connection.SystemConnection.describe = describe_without_streams  # type: ignore[assignment]
    home = sys.argv[1]
    sys.argv[1:] = ["--home", home, "--address", "127.0.0.1:0"]
    sys.exit(main())
