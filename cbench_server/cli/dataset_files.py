"""`cbench datasets download` and `check`: a mirror for machines without a network."""

import argparse
import sys

from cbench_server.cli.exits import OK, CommandFailed, UsageError
from cbench_server.cli.spec import registered_dataset
from cbench_server.datasets.download import check, download
from cbench_server.datasets.mirror import VARIABLE, mirror_folder, named_folder
from cbench_server.registry import registry


def download_datasets(args: argparse.Namespace) -> int:
    """Download datasets, one after the other."""
    wanted = []
    for text in args.datasets:
        asked = registered_dataset(text, None)
        record = registry.dataset(asked["name"])
        if record.hub is None:
            raise UsageError(f'dataset "{record.name}" is here already; leave it out.')
        wanted.append((record.hub, record.config_of(asked["config"])))
    folder = named_folder(args.to)
    if folder is None:
        raise UsageError(f"say where to with --to DIR, or set {VARIABLE}.")
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for source, config in wanted:
        for path in download(
            source, config, folder, revision=args.revision or "", limit=args.max_examples
        ):
            count += 1
            print(path.relative_to(folder), flush=True)
    files = "1 file" if count == 1 else f"{count} files"
    print(f"{files} downloaded. Use them with: --data-dir {folder}", file=sys.stderr)
    return OK


def check_datasets(args: argparse.Namespace) -> int:
    """Compare the files of a mirror with the digests noted when they were downloaded."""
    folder = mirror_folder(args.folder)
    if folder is None:
        raise UsageError(f"name the mirror's folder, or set {VARIABLE}.")
    found = [*check(folder)]
    wrong = [f"{name}: {trouble}" for name, trouble in found if trouble]
    for line in wrong:
        print(line)
    if wrong:
        raise CommandFailed(
            f"{len(wrong)} of {len(found)} files are not what was downloaded. Delete them, and "
            "download them again."
        )
    files = "1 file is" if len(found) == 1 else f"{len(found)} files are"
    print(f"{files} as downloaded.")
    return OK
