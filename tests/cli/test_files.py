"""What a command writes into a file: all of it or nothing, and trouble is told of that file."""

import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_server.cli.exits import UsageError
from cbench_server.cli.files import write_file

PARTS = [b"one", "two", b"x" * 20_000]


def test_a_link_stays_and_what_it_names_is_written(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("real")
    write_file(str(link), PARTS)
    assert link.is_symlink()
    assert (tmp_path / "real").read_bytes().startswith(b"onetwox")


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_file(str(pipe), PARTS)
    reader.join()
    assert len(found[0]) == 20_006
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("size", [3, 20_000], ids=["at-its-end", "under-way"])
def test_a_file_that_takes_no_more_is_named_and_left_out_whole(size: int, tmp_path: Path) -> None:
    (tmp_path / "r.run").write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, limits[1]))
    try:
        with pytest.raises(UsageError, match=r"cannot write .*r\.run: File too large\."):
            write_file(str(tmp_path / "r.run"), [b"x" * size])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]


def test_trouble_in_making_the_parts_is_told_as_it_is_and_leaves_the_older_file(
    tmp_path: Path,
) -> None:
    def parts() -> Iterator[bytes]:
        yield b"new"
        raise OSError(5, "the disk that is read", "cbench.db")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match=r"the disk that is read.*cbench\.db"):
        write_file(str(tmp_path / "file"), parts())
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]
