"""Token file of a daemon, read and changed line by line; the daemon notices by itself."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cbench_server.cli.exits import UsageError
from cbench_server.durable.files import put_in_place
from cbench_server.rpc.grants import Grant, parse_lines
from cbench_server.storage.leftovers import held


class TokenFile:
    """The lines of a token file."""

    def __init__(self, name: str) -> None:
        # A link stays one: what it leads to is replaced.
        self.path = Path(name).resolve()

    def grants(self) -> list[Grant]:
        """Return what is granted; bad lines are an error."""
        grants, wrong = parse_lines(self._lines())
        if wrong:
            raise UsageError(f"{self.path}, {wrong[0]}")
        return grants

    def add(self, line: str, check: Callable[[list[Grant]], None]) -> None:
        """Add a line, unless `check` raises for the grants there are."""
        with self._held():
            check(self.grants())
            self._replace([*self._lines(), line])

    def remove(self, choose: Callable[[list[Grant]], list[Grant]]) -> list[Grant]:
        """Remove the lines of grants that are chosen from those there are; return them."""
        with self._held():
            chosen = choose(self.grants())
            kept = [line for line in self._lines() if not {*parse_lines([line])[0]} & {*chosen}]
            self._replace(kept)
        return chosen

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"cannot read {self.path}: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{self.path} is not UTF-8, so it is no token file.") from error

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep other commands from changing it meanwhile."""
        try:
            with held(self.path.with_name(f".{self.path.name}.lock")):
                yield
        except PermissionError as error:
            raise UsageError(f"cannot write {error.filename}: {error.strerror}.") from error
        except FileNotFoundError as error:
            raise UsageError(f"there is no folder {self.path.parent}.") from error

    def _replace(self, lines: list[str]) -> None:
        """Write it anew, in one step, for the user who could read it before and nobody else."""
        # Of one name, since it is held: what a command that was killed has left goes here.
        part = self.path.with_name(f".{self.path.name}.part")
        try:
            part.unlink(missing_ok=True)
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines))
                with suppress(FileNotFoundError):
                    before = os.stat(self.path)
                    os.fchmod(handle, before.st_mode & 0o777)
                    os.fchown(handle, before.st_uid, before.st_gid)
                put_in_place("tokens", file, part, self.path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(part)
            raise UsageError(f"cannot write {self.path}: {error.strerror}.") from error
