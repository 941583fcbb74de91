"""A signal ends a server at whatever moment it comes."""

import os
import signal
import subprocess
import sys

PROGRAM = """
from cbench_client import serve

def same(example):
    return example

serve(same)
"""


def test_a_server_that_has_just_started_ends_in_order() -> None:
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "CBENCH_HANDSHAKE": "1"},
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"cbench|1|tcp|")
            process.send_signal(signal.SIGTERM)
            _, printed = process.communicate(timeout=60)
        assert process.returncode == 0, printed
