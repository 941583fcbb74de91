"""What starting a daemon or a short run imports: nothing heavy before it is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

DATABASE = {"sqlalchemy", "alembic"}
HEAVY = {"numpy", "pandas", "pyarrow", "datasets", "sympy", "nltk", "httpx", "tiktoken"}

DAEMON = """
import asyncio, sys
from dataclasses import replace
from cbench_server.daemon.assembly import running_daemon
from cbench_server.daemon.settings import load_settings

async def live():
    settings = replace(load_settings({}), address="127.0.0.1:0", home=sys.argv[1])
    async with running_daemon(settings):
        print(*sorted(sys.modules))

asyncio.run(live())
"""

RUN = """
import sys
from cbench_client import BenchClient
from cbench_server.daemon.embedded import embedded

spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
with embedded(home=sys.argv[1]) as target, BenchClient(target) as client:
    list(client.evaluate(spec))
print(*sorted(sys.modules))
"""

WARM = """
import sys, threading
from cbench_server.daemon.embedded import embedded

with embedded(home=sys.argv[1], evaluates=True):
    for thread in threading.enumerate():
        if thread.name == "cbench-warm-up":
            thread.join()
print(*sorted(sys.modules))
"""

LIST = """
import os, sys
os.environ["CBENCH_HOME"] = sys.argv[1]
from cbench_server.cli import main

assert main(["runs"]) == 0
print(*sorted(sys.modules))
"""


def printed(code: str, home: Path) -> set[str]:
    """Run code that prints names of modules, in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, home], capture_output=True, text=True, check=True
    )
    return {*done.stdout.split()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_daemon_starts_without_its_database_library_and_anything_heavy(home: Path) -> None:
    on_a_new_store = printed(DAEMON, home)
    on_an_existing_store = printed(DAEMON, home)
    for loaded in (on_a_new_store, on_an_existing_store):
        assert "sqlite3" in loaded
        assert loaded & (DATABASE | HEAVY | {"grpc_reflection.v1alpha.reflection"}) == set()


def test_a_short_run_loads_only_what_it_uses(home: Path) -> None:
    loaded = printed(RUN, home)
    assert "cbench_server.evaluators.answer_quality" in loaded
    assert "cbench_server.datasets.embedded.sets" in loaded
    assert loaded & (DATABASE | HEAVY - {"numpy"}) == set()
    unused = {"cbench_server.evaluators.math.equivalence", "cbench_server.datasets.catalog.maths"}
    assert loaded & unused == set()
    listed = printed(LIST, home)
    assert {"identity", "cbench_server.storage.sqlite"} <= listed
    assert listed & (DATABASE | HEAVY | {"grpc", "google.protobuf", "rich"}) == set()


def test_a_command_that_evaluates_has_numpy_and_the_vocabulary_loaded_meanwhile(
    home: Path,
) -> None:
    assert {"numpy", "splintr"} <= printed(WARM, home)
