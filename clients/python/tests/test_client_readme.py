"""The README's programs run as they stand."""

import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
PROGRAMS = [block for block in BLOCKS if "serve(" in block]


def test_hello_world_is_at_most_ten_lines() -> None:
    assert len(BLOCKS[0].strip().splitlines()) <= 10


@pytest.mark.parametrize("program", PROGRAMS, ids=["system", "memory", "evaluator"])
def test_a_program_serves(program: str) -> None:
    anywhere = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:0", program)
    process = subprocess.Popen(
        [sys.executable, "-c", anywhere], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], 30)
        assert ready, "no handshake within 30 s"
        assert process.stdout.readline().startswith("cbench|1|tcp|127.0.0.1:")
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
