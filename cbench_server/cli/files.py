"""Files that commands read and write; `-` is stdin or stdout."""

import codecs
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from cbench_server.cli.exits import UsageError
from cbench_server.durable.files import put_in_place
from cbench_server.texts.grid import printable_lines

STDOUT = "-"


def read_text(name: str) -> str:
    """Read a file, or stdin for `-`."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: {error.reason} at byte {error.start}.") from error


def write_file(name: str, parts: Iterable[str | bytes]) -> str:
    """Write the parts and return the file's size; an older file stays until all are written.

    A link stays one, and what is no file, such as a pipe, is written where it is.
    """
    path = Path(os.path.realpath(name))
    if path.is_dir():
        raise UsageError(f"cannot write {name}: it is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        with _told(name):
            handle = os.open(path, os.O_WRONLY)
        return size_text(_write(handle, name, parts))
    with _told(name):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")

    def place(file: IO[bytes]) -> None:
        # mkstemp makes the file private, which a report need not be.
        os.chmod(temporary, 0o666 & ~_umask())
        put_in_place("output", file, Path(temporary), path)

    try:
        return size_text(_write(handle, name, parts, place))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _write(
    handle: int,
    name: str,
    parts: Iterable[str | bytes],
    written: Callable[[IO[bytes]], None] = lambda file: None,
) -> int:
    """Write the parts and return their size; what is met in making them is not told of the file."""
    size = 0
    file = os.fdopen(handle, "wb")
    try:
        for part in parts:
            with _told(name):
                size += file.write(_encoded(part))
        with _told(name):
            file.flush()
            written(file)
    finally:
        with contextlib.suppress(OSError):
            file.close()
    return size


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """Name the file that cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise  # Who reads a pipe may leave.
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}. Name another file.") from error


def size_text(size: int) -> str:
    """Say how large a file is."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, size // 1000):,} kB"


def write_stdout(parts: Iterable[str | bytes]) -> None:
    """Write the parts as they are made; a terminal is shown no control characters of theirs."""
    if sys.stdout.isatty():
        # Parts are cut anywhere, also inside a character.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for part in parts:
            sys.stdout.write(printable_lines(decoder.decode(_encoded(part))))
        sys.stdout.write(printable_lines(decoder.decode(b"", final=True)))
        sys.stdout.flush()
        return
    for part in parts:
        sys.stdout.buffer.write(_encoded(part))
    sys.stdout.buffer.flush()


def _encoded(part: str | bytes) -> bytes:
    return part.encode("utf-8", "replace") if isinstance(part, str) else part


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
