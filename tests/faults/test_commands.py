"""Commands that are killed at every place between two durable steps, one place after another."""

import re
import shutil
import signal
from itertools import count
from pathlib import Path

import pytest

from cbench_server.durable import failpoints

from .commands import COMMANDS, IN_ORDER, succeeded

MOST = 200


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(IN_ORDER))
def test_a_command_killed_at_any_place_leaves_all_whole_and_can_be_done_again(
    tmp_path: Path, name: str
) -> None:
    command, places = COMMANDS[name], []
    for number in count(1):
        folder = command.folder(tmp_path / str(number))
        ended = command.kill(folder, f"{failpoints.ANY}:{number}")
        if ended.returncode != -signal.SIGKILL:
            break
        places += re.findall(failpoints.last_words("(.*)"), ended.stderr)
        assert len(places) == number < MOST
        command.check(folder)
        shutil.rmtree(folder)
    succeeded(ended)
    command.at_end(folder)
    # Before and behind each step.
    assert len(places) >= 2
