"""One process whose components a command lists: the flags that name it, and how it is reached."""

import argparse
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import pem
from cbench_server.cli.exits import CommandFailed, UsageError

if TYPE_CHECKING:
    from cbench_client import Tls


@dataclass(frozen=True)
class Process:
    """A process that serves something."""

    target: str
    where: str
    """What the user calls it: its address, or the command that launched it."""
    served: str | None = None
    """The only component of it that is meant."""
    tls: "Tls | None" = None
    token: str | None = None

    def means(self, name: str, all_names: Collection[str]) -> bool:
        """Whether a component of it is asked for; raises CommandFailed where none is."""
        if self.served is not None and self.served not in all_names:
            raise CommandFailed(
                f'{self.target} serves no "{self.served}". It serves: {", ".join(all_names)}.'
            )
        return self.served in (None, name)


def add_process(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name a process."""
    parser.add_argument(
        "--system", metavar="TARGET", help="list what the process at HOST:PORT serves"
    )
    parser.add_argument(
        "--launch", metavar="COMMAND", help="list what this program serves; it is ended afterwards"
    )
    options.add_launch_timeout(parser)
    parser.add_argument(
        "--credential",
        metavar="NAME",
        default="",
        help="the name of the credential in the configuration whose value the --system gets",
    )
    options.add_system_tls(parser, "connect to the --system")


@contextmanager
def named_process(args: argparse.Namespace) -> Iterator[Process | None]:
    """Give the process that the flags name, None if they name none; a launched one ends after."""
    if args.system and args.launch:
        raise UsageError("--system and --launch name two processes; list them one after the other.")
    if args.credential and not args.system:
        raise UsageError("--credential needs --system.")
    if args.launch:
        from cbench_server.cli.launches import launching

        with launching(quiet=True, patience=args.launch_timeout) as launches:
            launches.start(args.launch)
            yield Process(launches.wait()[0].target, args.launch)
    elif args.system:
        yield process_at(args.system, args)
    else:
        yield None


def process_at(text: str, args: argparse.Namespace) -> Process:
    """Give the process at `TARGET[/SERVED]`, reached as the flags for systems say."""
    from cbench_client import Tls
    from cbench_client.remote.peer import split_target

    target, served = split_target(text)
    tls = Tls(ca_pem=pem(args.system_ca)) if args.system_tls or args.system_ca else None
    return Process(target, target, served, tls, _token(args.credential, target))


def _token(credential: str, target: str) -> str | None:
    """Return what a system of the user's own configuration gets as its token."""
    if not credential:
        return None
    from cbench_server.daemon.settings import load_settings
    from cbench_server.rpc.credentials import Credentials

    return Credentials(load_settings({}).credential_table()).secret(credential, target)
