"""`cbench datasets`: list them, show one, copy some into a folder, check that folder."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.cards import Here, card, place_of, suite_card, suite_parts
from cbench_server.cli.components import (
    add_listing,
    components,
    message_to_dict,
    print_components,
)
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK, CommandFailed, UsageError
from cbench_server.cli.outcome import add_json, tell
from cbench_server.cli.screen import print_json, render_fields
from cbench_server.cli.spec import registered_dataset
from cbench_server.cli.values import positive_int
from cbench_server.errors import CbenchError, NotFound, UnknownName
from cbench_server.texts.grid import printable

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1 import bench_pb2
    from cbench_server.types import Example


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a listing, and the actions `show`, `download` and `check`."""
    add_listing(parser, datasets)
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    shown = options.add_action(
        actions, "show", show_dataset, "Show a dataset and one example of it"
    )
    shown.add_argument("dataset", metavar="NAME[:CONFIG]", help="a dataset; see: cbench datasets")
    add_listing(shown, show_dataset)
    options.inherit_flags(shown)
    _add_mirror(actions)


def _add_mirror(actions: options.Actions) -> None:
    fetched = options.add_action(
        actions,
        "download",
        download_datasets,
        "Copy datasets from the hub into a folder for --data-dir",
    )
    fetched.add_argument(
        "datasets", metavar="NAME[:CONFIG]", nargs="+", help="datasets; see: cbench datasets"
    )
    fetched.add_argument(
        "--to",
        metavar="DIR",
        help="the folder, created if it is missing (default: CBENCH_DATA_DIR)",
    )
    fetched.add_argument(
        "-n",
        "--max-examples",
        metavar="N",
        type=positive_int,
        help="at most this many rows of each dataset",
    )
    fetched.add_argument(
        "--revision", metavar="REV", help="read this commit, tag or branch from the hub"
    )
    checked = options.add_action(
        actions, "check", check_datasets, "Verify the digests of downloaded datasets"
    )
    add_json(fetched)
    add_json(checked)
    checked.add_argument(
        "folder", metavar="DIR", nargs="?", help="the folder (default: CBENCH_DATA_DIR)"
    )


def datasets(args: argparse.Namespace) -> int:
    """List datasets."""
    found = components(args).datasets
    rows = [
        (
            info.name,
            info.family,
            str(info.size) if info.HasField("size") else "?",
            ", ".join(info.evaluators),
            _figure(info) + ("" if info.official_metric else "*"),
            place_of(info, "embedded", "download"),
        )
        for info in found
    ]
    header = ("Dataset", "Family", "Size", "Evaluators", "Score", "Data")
    print_components(args, found, header, rows, {1, 3, 4, 5})
    if args.output == "table" and not all(info.official_metric for info in found):
        print("\n* Not the benchmark's own figure; why not: cbench datasets show NAME")
    return OK


def _figure(info: "bench_pb2.DatasetInfo") -> str:
    """Name what a run of it shows first."""
    from cbench_server.registry import registry

    try:
        figure = registry.dataset(info.name).protocol_of().figure
    except NotFound:
        figure = info.primary_score
    return figure or "none"


def show_dataset(args: argparse.Namespace) -> int:
    """Show a dataset as the daemon knows it, with the first example as this machine loads it."""
    asked = registered_dataset(args.dataset, None)
    with connect(args) as client:
        known = {info.name: info for info in client.components().datasets}
        info = known.get(asked["name"]) or known.get(_registered_name(asked["name"]))
        if info is None:
            raise UnknownName("dataset", asked["name"], known)
        parts = _configs(info.name, asked["config"])
    if len(parts) > 1:
        return _show_suite(args, info, parts)
    config = parts[0]
    example, trouble = _first_example(info.name, config, is_chosen=bool(config))
    here = _here(info.name, config) if example is not None else None
    if args.output == "json":
        shown = {"prompt": _prompt(info, config), "here": here, "example": example}
        print_json({**message_to_dict(info), **shown})
        return OK
    print(card(info, config, here))
    if example is None:
        print(f"\nNo example can be shown: {trouble}")
    else:
        print(f"\n{_example(example, info.reference_fields)}")
    return OK


def _prompt(info: "bench_pb2.DatasetInfo", config: str) -> dict[str, Any]:
    """Describe what models are told of a config, the default one when empty."""
    from cbench_server.datasets.prompts.library import prompt_for

    usual = info.protocols[0].configs[0] if info.protocols else ""
    return prompt_for(info.name, config or usual).describe()


def _show_suite(
    args: argparse.Namespace, info: "bench_pb2.DatasetInfo", configs: Sequence[str]
) -> int:
    if args.output == "json":
        print_json({**message_to_dict(info), "parts": suite_parts(info, configs)})
    else:
        print(suite_card(info, args.dataset, configs))
    return OK


def _configs(name: str, config: str) -> tuple[str, ...]:
    """Return the configs of a suite, else the config itself."""
    from cbench_server.datasets.suites import suite_configs
    from cbench_server.registry import registry

    try:
        return (config and suite_configs(registry.dataset(name), config)) or (config,)
    except UnknownName:
        return (config,)  # The daemon may have a dataset that is not registered here.


def _registered_name(name: str) -> str:
    from cbench_server.registry import registry

    with suppress(UnknownName):
        return registry.name_of("dataset", name)
    # The daemon may have a dataset that is not registered here.
    return name.replace("_", "-")


def _first_example(name: str, config: str, *, is_chosen: bool) -> tuple[dict[str, Any] | None, str]:
    from cbench_server.registry import registry

    try:
        registry.dataset(name).config_of(config)
    except CbenchError as error:
        if is_chosen:
            raise UsageError(str(error)) from error
        return None, str(error)
    try:
        example = next(iter(_opened(name, config)), None)
    except CbenchError as error:
        # The card says what is measured, whether or not the rows are here.
        return None, str(error)
    return example, "it is empty."


def _here(name: str, config: str) -> Here | None:
    """Say what a mirror has of a config; None where it has nothing, or needs none."""
    from cbench_server.registry import registry

    record = registry.dataset(name)
    if record.hub is None:
        return None
    split = record.hub.split_here(record.config_of(config), registry.data_dir)
    if not split:
        return None
    try:
        return {"split": split, "examples": sum(1 for _ in _opened(name, config))}
    except CbenchError:
        # Some rows cannot be read; a run would say which.
        return None


def _opened(name: str, config: str) -> Iterator["Example"]:
    from cbench_server.registry import registry

    record = registry.dataset(name)
    return record.examples(config, **record.mirror_option(registry.data_dir))


def _example(example: Mapping[str, Any], reference_fields: Any) -> str:
    from cbench_server.datasets.withheld import Withheld

    withheld = Withheld(reference_fields)
    seen = {name: value for name, value in example.items() if name not in withheld}
    hidden = {name: value for name, value in example.items() if name in withheld}
    parts = ["A system sees:", render_fields(seen)]
    if hidden:
        parts += ["", "A system does not see:", render_fields(hidden)]
    return "\n".join(parts)


def download_datasets(args: argparse.Namespace) -> int:
    """Download datasets, one after the other."""
    from cbench_server.datasets.hub.download import download
    from cbench_server.datasets.hub.mirror import VARIABLE, named_folder
    from cbench_server.registry import registry

    wanted = []
    for text in args.datasets:
        asked = registered_dataset(text, None)
        record = registry.dataset(asked["name"])
        if record.hub is None:
            raise UsageError(f'dataset "{record.name}" is here already; leave it out.')
        for config in _configs(record.name, asked["config"]):
            wanted.append((record.hub, record.config_of(config)))
    folder = named_folder(args.to)
    if folder is None:
        raise UsageError(f"name the folder to download to with --to DIR, or set {VARIABLE}.")
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for source, config in wanted:
        for path in download(
            source, config, folder, revision=args.revision or "", limit=args.max_examples
        ):
            names.append(path.relative_to(folder).as_posix())
            if args.output != "json":
                print(names[-1], flush=True)
    files = "1 file" if len(names) == 1 else f"{len(names)} files"
    done = f"{files} downloaded. Use them with: --data-dir {folder}"
    tell(args, {"folder": str(folder), "files": names}, done)
    return OK


def check_datasets(args: argparse.Namespace) -> int:
    """Compare the files of a mirror with the digests noted when they were downloaded."""
    from cbench_server.datasets.hub.download import check
    from cbench_server.datasets.hub.mirror import VARIABLE, mirror_folder

    folder = mirror_folder(args.folder)
    if folder is None:
        raise UsageError(f"name the mirror's folder, or set {VARIABLE}.")
    found = [*check(folder)]
    wrong = [f"{name}: {trouble}" for name, trouble in found if trouble]
    if args.output == "json":
        print_json([{"file": str(name), "trouble": trouble or None} for name, trouble in found])
    for line in wrong if args.output != "json" else ():
        print(printable(line))
    if wrong:
        raise CommandFailed(
            f"{len(wrong)} of {len(found)} files are not what was downloaded. Delete them, and "
            "download them again."
        )
    files = "1 file is" if len(found) == 1 else f"{len(found)} files are"
    if args.output != "json":
        print(f"{files} as downloaded.")
    return OK
