"""Local models of a command: `local` and `local:FILE` in the place of a URL, served until its end.

Every flag that takes the URL of a model takes them. The servers belong to the command, listen on
the loopback, and end with it in any case. What they serve is on record in the run, and where they
listened is in a file of this user, by which `cbench resume` serves them again.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cbench_server.cli.connect import server_of
from cbench_server.cli.exits import UsageError
from cbench_server.cli.options import DEFAULT_MODEL

if TYPE_CHECKING:
    from cbench_server.models.local import LocalModel, NamedModel

Serve = Callable[..., "NamedModel | None"]


def is_local(text: object) -> bool:
    """Whether a flag names a local model."""
    return isinstance(text, str) and (text == "local" or text.startswith("local:"))


@contextmanager
def local_models(args: argparse.Namespace) -> Iterator["list[LocalModel]"]:
    """Serve the local models that a command names, and put their addresses in the place."""
    if not any(is_local(text) for text in _named(args)):
        yield []
        return
    _check_reach(args)
    # Here, so that commands without a local model do not load it.
    from cbench_server.models.local import DEFAULT_CONTEXT, LocalSettings, path_in, serving

    served: dict[tuple[str, bool], LocalModel] = {}
    window = vars(args).get("context_window") or DEFAULT_CONTEXT
    with ExitStack() as stack:

        def serve(text: str, apart: bool = False) -> "LocalModel | None":
            path = path_in(text) if is_local(text) else None
            if path is None:
                return None
            if (path, apart) not in served:
                settings = LocalSettings(context=window)
                served[path, apart] = stack.enter_context(serving(path, settings))
            return served[path, apart]

        _replace(args, serve, window)
        _label(args, list(served.values()))
        yield list(served.values())


def named_models(args: argparse.Namespace) -> dict[str, str]:
    """Put what stands for local models in their place, and return which that is, by its address.

    None is served. One that is not there is refused, as if it were to be.
    """
    if not any(is_local(text) for text in _named(args)):
        return {}
    _check_reach(args)
    from cbench_server.models.local import DEFAULT_CONTEXT, LocalSettings, NamedModel, path_in
    from cbench_server.models.local_files import model_file

    named: dict[str, str] = {}
    window = vars(args).get("context_window") or DEFAULT_CONTEXT

    def name(text: str, apart: bool = False) -> NamedModel | None:
        path = path_in(text) if is_local(text) else None
        if path is None:
            return None
        url = f"http://local-{len(named)}"
        named[url] = text
        return NamedModel(model_file(path), LocalSettings(context=window), url)

    _replace(args, name, window)
    return named


def record_of(model: "LocalModel") -> dict[str, Any]:
    """Tell what it takes to serve a model again where it was."""
    settings = asdict(model.settings)
    return {"gguf": str(model.file), "settings": settings, "port": urlsplit(model.url).port}


def serve_again(record: dict[str, Any]) -> "LocalModel":
    """Serve a model of a record; whoever calls closes it."""
    from cbench_server.models.local import LocalSettings, start

    return start(record["gguf"], LocalSettings(**record["settings"]), record["port"])


def _named(args: argparse.Namespace) -> list[object]:
    given = vars(args)
    proxies = [value for kind, value in given.get("systems") or () if kind == "proxy"]
    single = [given.get(name) for name in ("reader", "direct", "likelihood")]
    return [*proxies, *single, *(given.get("judge_url") or ())]


def _check_reach(args: argparse.Namespace) -> None:
    server = server_of(args) if "server" in vars(args) else ""
    if not server:
        return
    from cbench_client.remote.channel import is_loopback

    if not is_loopback(server):
        raise UsageError(
            f"local serves a model on this machine, where the daemon at {server} cannot reach it. "
            "Serve one there with `cbench model serve` and give its URL, or leave out --server."
        )


def _replace(args: argparse.Namespace, serve: Serve, window: int) -> None:
    _replace_proxies(args, serve)
    _replace_reader(args, serve, window)
    _replace_judges(args, serve)
    _replace_likelihood(args, serve)


def _replace_proxies(args: argparse.Namespace, serve: Serve) -> None:
    given = vars(args)
    systems = given.get("systems")
    if systems:
        args.systems = []
        for place, (kind, value) in enumerate(systems):
            model = serve(value) if kind == "proxy" else None
            args.systems.append((kind, model.url if model else value))
            if model is not None:
                _name_model(args, model)
                if len(args.name) <= place:
                    args.name = [*args.name, *[""] * (place - len(args.name)), model.model]
    if model := serve(given.get("direct") or ""):
        args.direct = model.url
        _name_model(args, model)


def _name_model(args: argparse.Namespace, model: "NamedModel") -> None:
    """Have rows say which model answered; its server would take any name."""
    if args.model == DEFAULT_MODEL:
        args.model = model.model


def _replace_reader(args: argparse.Namespace, serve: Serve, window: int) -> None:
    model = serve(vars(args).get("reader") or "")
    if model is None:
        return
    args.reader = model.url
    args.reader_model = args.reader_model or model.model
    # More would wait in the server, with their time running.
    args.reader_workers = args.reader_workers or model.settings.slots
    args.context_window = args.context_window or window


def _replace_judges(args: argparse.Namespace, serve: Serve) -> None:
    urls = vars(args).get("judge_url") or []
    models = [serve(url) for url in urls]
    if not any(models):
        return
    args.judge_url = [m.url if m else url for m, url in zip(models, urls, strict=True)]
    # A judge that answers as well is marked as self-graded where no model is named for it.
    answers = {vars(args).get("reader_model"), args.model}
    names = [m.model if m else args.model for m in models]
    if not args.judge_model:
        if set(names) <= answers:
            args.model = names[0]
        else:
            args.judge_model = names


def _replace_likelihood(args: argparse.Namespace, serve: Serve) -> None:
    # With a core to spare, a server of its own: each works on one request at a time, and a reader
    # keeps the other busy.
    apart = is_local(vars(args).get("likelihood")) and (os.cpu_count() or 1) > 1
    model = serve(vars(args).get("likelihood") or "", apart)
    if model is not None:
        args.likelihood = model.url
        args.likelihood_model = args.likelihood_model or model.model


def _label(args: argparse.Namespace, served: "list[LocalModel]") -> None:
    """Put on record what was served, by digest and settings."""
    if "labels" not in vars(args):
        return
    unlike = {(model.file, model.settings): model for model in served}
    for place, model in enumerate(unlike.values(), 1):
        suffix = f"_{place}" if place > 1 else ""
        new = [(f"{name}{suffix}", value) for name, value in model.labels().items()]
        args.labels = [*args.labels, *new]
