"""`cbench run --dry-run`: what a run would do, ask and cost; nobody is called or launched."""

import argparse
import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench_server.cli.bridges import check_http
from cbench_server.cli.connect import server_of, system_tls
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.launch import command_words
from cbench_server.cli.local_models import named_models
from cbench_server.cli.screen import print_json
from cbench_server.cli.served import Announced, assumed_names
from cbench_server.cli.spec import build_spec, registered_dataset
from cbench_server.texts import numbers
from cbench_server.texts.grid import printable

if TYPE_CHECKING:
    from cbench_server.runs.forecast import Forecast
    from cbench_server.types import Evaluator, Example


def dry_run(args: argparse.Namespace) -> int:
    """Print the forecast of a command line."""
    made = asyncio.run(_forecast(args))
    if args.output == "json":
        print_json(asdict(made))
        return OK
    print("\n".join(map(printable, _lines(made))))
    return OK


async def _forecast(args: argparse.Namespace) -> "Forecast":
    from cbench_client._gen.cbench.v1 import bench_pb2
    from cbench_client.bench.spec import message_from_dict
    from cbench_server.daemon.imports import import_modules
    from cbench_server.daemon.settings import load_settings
    from cbench_server.registry import registry
    from cbench_server.rpc.credentials import Credentials
    from cbench_server.rpc.evaluator_factory import EvaluatorMaker
    from cbench_server.rpc.specs import spec_from_proto
    from cbench_server.runs.forecast import Elsewhere, forecast
    from cbench_server.spec import EvaluatorRef

    settings = load_settings({})
    import_modules(tuple(args.imports or ()))
    registry.data_dir = args.data_dir or settings.data_dir
    models = named_models(args)
    files = _Files(skip_bad_lines=args.skip_bad_lines)
    launched = _launched(args)
    assumed = assumed_names(args, launched)
    message = message_from_dict(bench_pb2.RunSpec(), _spec(args, files, launched, assumed))
    maker = EvaluatorMaker(registry, Credentials(settings.credential_table(), "OPENAI_API_KEY"))

    async def find(ref: EvaluatorRef) -> "Evaluator":
        # What is attached to a daemon elsewhere is not known here.
        is_attached = server_of(args) and ref.name not in registry.list("evaluator")
        if ref.target or is_attached:
            return Elsewhere(ref.name)
        return await maker.make(ref.name, ref.options)

    spec = spec_from_proto(message)
    made = await forecast(spec, registry, files, find, settings.price_table())
    made.addresses = {who: models.get(where, where) for who, where in made.addresses.items()}
    for place, names in assumed.items():
        made.notes.append(
            f"only the run can tell whether {args.systems[place][1]} serves {', '.join(names)}, "
            "and what else"
        )
    return made


def _launched(args: argparse.Namespace) -> dict[int, tuple[str, str]]:
    """Return what would be started, by its place, having looked whether it can be."""
    launched = {}
    for place, (kind, value) in enumerate(args.systems):
        if kind == "http":
            check_http(value)
        elif kind in ("launch", "exec"):
            command_words(value)
        else:
            continue
        launched[place] = (f"{kind}: {value}", "")
    return launched


def _spec(
    args: argparse.Namespace,
    files: "_Files",
    launched: Mapping[int, tuple[str, str]],
    assumed: Announced,
) -> dict[str, Any]:
    selection = {
        "shuffle": args.shuffle,
        "where": dict(args.where),
        "split": args.split,
        "revision": args.revision,
        "skip_bad_lines": args.skip_bad_lines,
        "mapping": dict(args.mapping),
        "as_transcript": args.kind != "memory" and args.as_transcript,
    }
    datasets = [{**(files.dataset(text, args.max_examples)), **selection} for text in args.datasets]
    predictions = {
        place: {"upload": files.add(value), "name": "predictions"}
        for place, (kind, value) in enumerate(args.systems)
        if kind == "predictions"
    }
    for file in filter(None, (vars(args).get("labels_file"), vars(args).get("errata"))):
        files.add(file)
    return build_spec(args, launched, predictions, datasets, system_tls(args), None, assumed)


class _Files:
    """Files of a command line, read in the place of what a daemon would be sent."""

    def __init__(self, *, skip_bad_lines: bool) -> None:
        self._skips = skip_bad_lines
        self._paths: dict[str, Path] = {}

    def dataset(self, text: str, most: int | None) -> dict[str, Any]:
        """Return what a spec says of a dataset that is named or is a file."""
        from cbench_server.cli.uploads import named_file
        from cbench_server.datasets.readers.files import is_file_name

        if not is_file_name(text):
            return registered_dataset(text, most)
        name, _ = named_file(text)
        return {"name": name, "upload": self.add(text), "max_examples": most}

    def add(self, text: str) -> str:
        """Return what stands for the digest of a file that can be read and has examples."""
        from cbench_server.cli.uploads import named_file

        _, path = named_file(text)
        digest = f"{len(self._paths):064x}"
        self._paths[digest] = path
        if next(self.iterate(digest), None) is None:
            raise UsageError(f"{path} contains no examples.")
        return digest

    def iterate(self, digest: str) -> "Iterator[Example]":
        """Read the examples of a file."""
        from cbench_server.datasets.readers.files import iterate_file

        yield from iterate_file(self._paths[digest], skip_bad_lines=self._skips)

    def count(self, digest: str) -> int:
        """Return how many examples a file has."""
        return sum(1 for _ in self.iterate(digest))


def _lines(made: "Forecast") -> Iterator[str]:
    """Write a forecast for a person."""
    yield "A dry run: nobody was called, and nothing was launched or stored."
    sets = ", ".join(f"{name} {count:,}" for name, count in made.datasets.items())
    systems, repeats = len(made.systems), made.repeats
    times = f" × {repeats:,} repeats" if repeats > 1 else ""
    plural = "s" if systems != 1 else ""
    yield f"rows       {made.rows:,}: {systems} system{plural} × {sets} examples{times}"
    for who, count in made.calls.items():
        yield f"calls      {count:,} at most: {who}"
    for who, where in made.addresses.items():
        yield f"address    {where}: {who}"
    for what, count in made.tokens.items():
        yield f"tokens     {count:,} {what}"
    if made.usd is None:
        yield "dollars    unknown: no model has a price"
    else:
        yield f"dollars    at most {numbers.usd(made.usd)}"
    for note in made.notes:
        yield f"note       {note}"
