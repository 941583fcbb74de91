"""`cbench tokens`: make, list and revoke the tokens of a daemon, in its token file."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.exits import OK, UsageError, did_you_mean
from cbench_server.cli.outcome import add_json, inform, tell
from cbench_server.cli.values import age

if TYPE_CHECKING:
    from cbench_server.cli.token_file import TokenFile
    from cbench_server.rpc.grants import Grant

_ROLES = ("read", "score", "run", "attach", "admin")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `create`, `list` and `revoke`."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    create = options.add_action(
        actions, "create", create_token, "Make a token, and print it this once"
    )
    create.add_argument("name", metavar="NAME", help="whose it is; stands on runs and in the log")
    create.add_argument(
        "--role",
        dest="roles",
        choices=_ROLES,
        help="what it is for: read; score; run (its own runs, read, score); attach; admin. "
        "Repeatable",
        **options.REPEATABLE,
    )
    create.add_argument(
        "--attach",
        metavar="SYSTEM",
        dest="names",
        help="a name under which it may attach a system, for the role attach; repeatable",
        **options.REPEATABLE,
    )
    create.add_argument(
        "--expires", metavar="WHEN", help="when it ends: 30d, 12h, or a date such as 2027-01-31"
    )
    create.add_argument(
        "--cert",
        metavar="NAME",
        help="make no token: know the client by this name in its certificate (mutual TLS)",
    )
    create.add_argument(
        "--another", action="store_true", help="allow a second token under a name, to renew it"
    )
    listing = options.add_action(
        actions, "list", list_tokens, "List the tokens, of which only digests are kept"
    )
    options.add_output(listing)
    revoke = options.add_action(
        actions, "revoke", revoke_tokens, "Revoke tokens; their open calls end within seconds"
    )
    revoke.add_argument(
        "tokens", metavar="TOKEN", nargs="+", help="a name, for all its tokens, or an id"
    )
    for action in (create, revoke):
        add_json(action)
    for action in (create, listing, revoke):
        action.add_argument(
            "--token-file",
            metavar="FILE",
            help="the token file of the daemon, also from CBENCH_TOKEN_FILE or CBENCH_CONFIG",
        )


def create_token(args: argparse.Namespace) -> int:
    """Make a token, or let a certificate stand for one."""
    from cbench_server.cli.screen import print_json
    from cbench_server.rpc import grants

    if not args.roles:
        raise UsageError(f"say what the token is for: --role {'|'.join(_ROLES)}.")
    token = "" if args.cert else grants.new_token()
    grant = grants.check(
        grants.Grant(
            args.name,
            frozenset(args.roles),
            f"cert:{args.cert}" if args.cert else grants.digest_of(token),
            frozenset(args.names),
            _expiry(args.expires),
        )
    )

    def check(there: "list[Grant]") -> None:
        same = [each for each in there if each.name == grant.name]
        if same and not args.another:
            ids = ", ".join(each.id for each in same)
            raise UsageError(
                f'there is a token of "{grant.name}" already ({ids}). Pass --another to renew it, '
                f"then revoke the old one: cbench tokens revoke {same[0].id}"
            )
        if grant.certificate and any(each.secret == grant.secret for each in there):
            raise UsageError(f'the certificate "{args.cert}" stands in the file already.')

    file = _file(args)
    file.add(grants.format_line(grant), check)
    roles = ", ".join(sorted(grant.roles))
    what = f'the certificate "{args.cert}"' if args.cert else f"token {grant.id}"
    inform(args, f'{what} is "{grant.name}" now, for {roles}, in {file.path}.')
    if token:
        inform(args, "It is not kept and not shown again. Pass it in CBENCH_TOKEN.")
    if args.output == "json":
        print_json({**_plain(grant), "token": token or None})
    elif token:
        print(token)
    return OK


def list_tokens(args: argparse.Namespace) -> int:
    """List the grants of the file."""
    from cbench_server.cli.screen import draw, print_json
    from cbench_server.texts.grid import Grid

    grants = _file(args).grants()
    if args.output == "json":
        print_json([_plain(grant) for grant in grants])
    elif grants:
        header = ("Id", "Name", "Roles", "Attaches", "Expires", "Kind")
        rows = tuple(tuple(_plain(grant)[key] for key in _KEYS) for grant in grants)
        shown = tuple(tuple(_text(value) for value in row) for row in rows)
        print(draw(Grid(header, shown, frozenset(range(1, len(header) + 1)))))
    else:
        inform(args, "There are no tokens. Make one with: cbench tokens create")
    return OK


_KEYS = ("id", "name", "roles", "attaches", "expires", "kind")


def _plain(grant: "Grant") -> dict[str, Any]:
    from cbench_server.rpc.grants import text_of

    kind = f"certificate {grant.certificate}" if grant.certificate else "token"
    over = grant.expires is not None and grant.expires <= time.time()
    return {
        "id": grant.id,
        "name": grant.name,
        "roles": sorted(grant.roles),
        "attaches": sorted(grant.names),
        "expires": None if grant.expires is None else text_of(grant.expires),
        "is_over": over,
        "kind": "token in plain text" if grant.is_plain else kind,
    }


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return value or ""


def revoke_tokens(args: argparse.Namespace) -> int:
    """Remove grants; every name is looked up before the first is removed."""

    def choose(there: "list[Grant]") -> "list[Grant]":
        chosen: list[Grant] = []
        for text in args.tokens:
            found = [each for each in there if text in (each.name, each.id)]
            if not found:
                hint = did_you_mean(text, [each.name for each in there])
                raise UsageError(f'no token "{text}".{hint} List them with: cbench tokens list')
            chosen += found
        return chosen

    gone = dict.fromkeys(_file(args).remove(choose))
    sentences = (f'revoked {grant.id} of "{grant.name}"' for grant in gone)
    tell(args, {"revoked": [_plain(grant) for grant in gone]}, *sentences)
    return OK


def _file(args: argparse.Namespace) -> "TokenFile":
    from cbench_server.cli.token_file import TokenFile
    from cbench_server.daemon.settings import load_settings

    name = args.token_file or load_settings({}).token_file
    if not name:
        raise UsageError(
            "name the token file that the daemon is started with: --token-file FILE, or "
            "CBENCH_TOKEN_FILE."
        )
    return TokenFile(name)


def _expiry(text: str | None) -> float | None:
    from cbench_server.rpc.grants import BadGrant, time_of

    if text is None:
        return None
    try:
        return time.time() + age(text)
    except argparse.ArgumentTypeError:
        pass
    try:
        when = time_of(text)
    except BadGrant:
        raise UsageError(
            f'--expires "{text}" is not a valid time; write 30d, 12h, 2027-01-31 or '
            "2027-01-31T12:00:00Z."
        ) from None
    if when <= time.time():
        raise UsageError(f"--expires {text} is in the past.")
    return when
