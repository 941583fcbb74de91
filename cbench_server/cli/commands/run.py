"""`cbench run`: evaluate systems on datasets."""

import argparse
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.connect import connect, server_of, system_tls, token_of
from cbench_server.cli.exits import UsageError
from cbench_server.cli.judge import add_judge_flags
from cbench_server.cli.likelihood import add_likelihood_flags
from cbench_server.cli.local_models import local_models
from cbench_server.cli.models import add_model_flags
from cbench_server.cli.run_files.arguments import add_file_flags, fill_in
from cbench_server.cli.sweeps import add_controls_flag, add_direct_flag, add_sweep_flag
from cbench_server.cli.values import natural_int
from cbench_server.texts.grid import printable

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_client._gen.cbench.v1 import bench_pb2
    from cbench_server.cli.launches import Launches

# How long a daemon may be unreachable before we give up; the run continues without us.
_RECONNECT_S = 600.0
_LAUNCHED = ("launch", "exec", "http")
_ASK_AGAIN_S = 0.5

_EXAMPLES = """\
examples:
  cbench run --system localhost:50061 --dataset hotpotqa -n 200
  cbench run --builtin identity --builtin truncate-head --dataset long-notes
  cbench run --launch "python my_system.py" --dataset my-examples.jsonl --output csv > rows.csv
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench run`."""
    parser.usage = "cbench run --system TARGET --dataset NAME [flags]"
    parser.epilog = f"{_EXAMPLES}\n{options.EXIT_CODE_HELP}"
    parser.set_defaults(handler=run, kind="process", budget=None, question_types=())
    systems = parser.add_argument_group("systems, at least one, each flag repeatable")
    options.add_systems(systems, options.SYSTEMS, "each --proxy")
    add_direct_flag(systems)
    add_sweep_flag(systems)
    examples = parser.add_argument_group("examples, at least one --dataset")
    options.add_examples(examples, "examples")
    examples.add_argument(
        "--as-transcript",
        action="store_true",
        help="give conversations to systems without a memory: each question with the transcript",
    )
    examples.add_argument(
        "--expose-references",
        action="store_true",
        help="let systems see the expected answers; for debugging only",
    )
    examples.add_argument(
        "--reference-field",
        metavar="FIELD",
        dest="reference_fields",
        help="another field to hide from systems; repeatable",
        **options.REPEATABLE,
    )
    options.add_scoring(parser.add_argument_group("scoring"))
    add_model_flags(parser)
    add_judge_flags(parser)
    add_likelihood_flags(parser)
    conduct = parser.add_argument_group("conduct of the run")
    options.add_conduct(conduct, "60s")
    conduct.add_argument(
        "--reuse",
        action="store_true",
        help="take answers from earlier runs where the same version of a system was given the "
        "same example and options; a system without a version is always asked",
    )
    conduct.add_argument(
        "--ask-again",
        metavar="N",
        dest="asked_again",
        type=natural_int,
        help="rows of each system that are asked a second time after its last, to see whether it "
        "is deterministic; none where it answered fewer than ten; they are no rows (default: 5)",
    )
    add_controls_flag(conduct)
    options.add_dry_run(conduct)
    options.add_run_output(parser, "; jsonl prints rows as they are made")
    add_file_flags(parser)
    options.add_server_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Start a run, follow it and print it."""
    from cbench_server.cli.follow import conclude
    from cbench_server.cli.output import check_output
    from cbench_server.cli.run_files.conduct import check_detach, kept, leave_to_daemon
    from cbench_server.cli.run_files.gates import at_end, check_gate
    from cbench_server.cli.spec import check_systems

    fill_in(args)
    gate = args.filed.gate if args.filed else {}
    check_gate(gate)
    if not args.imports:
        check_output(args)
    check_systems(args)
    if not args.datasets:
        raise UsageError("name at least one --dataset. List them with: cbench datasets")
    if args.dry_run:
        from cbench_server.cli.dry_run import dry_run

        return dry_run(args)
    check_detach(args)
    tls = system_tls(args)
    with (
        local_models(args) as models,
        launching_all(args) as launches,
        connect(args, evaluates=True) as client,
    ):
        launches.models = models
        # Once more, now that --import has registered its reporters.
        check_output(args)
        spec = spec_of(client, args, launches, tls)
        streams_rows = args.output == "jsonl"
        asked = launches.blamed(_evaluate(client, spec, streams_rows, args.wait or 0.0))
        events = kept(args, asked)
        if args.detach:
            return leave_to_daemon(args, events)
        return conclude(
            client,
            events,
            args,
            streams_rows=streams_rows,
            with_rows=True,
            launches=launches,
            at_end=at_end(gate, args.output),
        )


def spec_of(
    client: "BenchClient",
    args: argparse.Namespace,
    launches: "Launches",
    tls: dict[str, Any] | None,
) -> dict[str, Any]:
    """Send the files of a command line to the daemon, and build the spec of its run."""
    from cbench_server.cli.run_files.conduct import labelled
    from cbench_server.cli.run_files.filed import chosen_names
    from cbench_server.cli.served import announced_names
    from cbench_server.cli.spec import build_spec
    from cbench_server.cli.uploads import upload_judge_files

    launched = _launched(args, launches)
    datasets = [_dataset(client, args, place) for place in range(len(args.datasets))]
    sent = upload_judge_files(client, args.labels_file, args.errata)
    named = chosen_names(args, announced_names(args, _dialled(launched)))
    predictions = _predictions(client, args)
    spec = build_spec(args, launched, predictions, datasets, tls, sent, named)
    _add_sources(spec, args, launched)
    return labelled(spec, args)


def _add_sources(
    spec: dict[str, Any], args: argparse.Namespace, launched: Mapping[int, tuple[str, str]]
) -> None:
    """Say of the systems that were launched from which commit their programs are."""
    from cbench_server.cli.launched_source import source_of

    commands = {log: args.systems[place] for place, (_, log) in launched.items()}
    for system in spec["systems"]:
        kind, command = commands.get(system.get("log", ""), ("", ""))
        if kind in ("launch", "exec"):
            system["revision"] = source_of(command, Path.cwd())


def _evaluate(
    client: "BenchClient", spec: dict[str, Any], rows_wanted: bool, wait: float
) -> Iterator["bench_pb2.RunEvent"]:
    """Start the run and follow it; `--wait` is how long what it needs may take to appear."""
    from cbench_client import Refused

    request_id, deadline = str(uuid.uuid4()), None
    while True:
        try:
            for event in client.evaluate(
                spec, request_id=request_id, include_rows=rows_wanted, reconnect_for=_RECONNECT_S
            ):
                if event.HasField("accepted") and spec["options"]:
                    _check_options_known(client, event.accepted)
                yield event
            return
        except Refused as error:
            if error.reason not in ("SYSTEM_UNREACHABLE", "DATASET_AWAY") or not wait:
                raise
            # Counted from here: starting a daemon of our own is not waiting for a system.
            if deadline is None:
                deadline = time.monotonic() + wait
                print(f"waiting: {printable(str(error))}", file=sys.stderr)
            elif time.monotonic() >= deadline:
                raise
        time.sleep(_ASK_AGAIN_S)


def _check_options_known(client: "BenchClient", run: "bench_pb2.Run") -> None:
    """Stop a run whose daemon is too old to know of options for all systems."""
    if not run.spec.options:
        client.cancel(run.run_id)
        raise UsageError(
            "this daemon does not know options for all systems, so the run was cancelled. Name "
            "the system of each: --option SYSTEM.KEY=VALUE."
        )


def _dataset(client: "BenchClient", args: argparse.Namespace, place: int) -> dict[str, Any]:
    from cbench_server.cli.run_files.filed import dataset_at
    from cbench_server.cli.spec import registered_dataset
    from cbench_server.cli.uploads import upload
    from cbench_server.datasets.readers.files import is_file_name

    text, args, uploaded = dataset_at(args, place)
    selection = {
        "shuffle": args.shuffle,
        "where": dict(args.where),
        "split": args.split,
        "revision": args.revision,
        "skip_bad_lines": args.skip_bad_lines,
        "mapping": dict(args.mapping),
        "as_transcript": args.as_transcript,
    }
    if uploaded:
        return {**uploaded, **selection, "max_examples": args.max_examples}
    if not is_file_name(text):
        return {**registered_dataset(text, args.max_examples), **selection}
    # The daemon shuffles and filters, so it needs all examples.
    is_chosen_there = args.shuffle or args.where or args.question_types
    count = None if is_chosen_there else args.max_examples
    sent = upload(client, text, count, skip_bad_lines=args.skip_bad_lines)
    return {**sent, **selection, "max_examples": args.max_examples}


def _predictions(client: "BenchClient", args: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """Send the files of --predictions; return what they became, by place."""
    from cbench_server.cli.run_files.filed import uploaded_at
    from cbench_server.cli.uploads import upload

    return {
        place: uploaded_at(args, place)
        or upload(client, value, None, skip_bad_lines=args.skip_bad_lines)
        for place, (kind, value) in enumerate(args.systems)
        if kind == "predictions"
    }


@contextmanager
def launching_all(args: argparse.Namespace) -> Iterator["Launches"]:
    """Start the systems of --launch, and bridges, so that they get ready while a daemon does."""
    from cbench_server.cli.bridges import bridge_command, bridge_label
    from cbench_server.cli.cluster_launch import Places
    from cbench_server.cli.engine_flags import check_engine
    from cbench_server.cli.launches import launching
    from cbench_server.cli.replicas import copies_of
    from cbench_server.cli.run_files.filed import bridge_at, folder_at

    places = _places(args)
    server = server_of(args)
    launched = any(args.systems[place][0] == "launch" for place in places)
    if launched and server and not _is_loopback(server):
        raise UsageError(
            f"--launch starts a system on this machine, where the daemon at {server} cannot "
            "reach it. Start it there and pass --system, or leave out --server."
        )
    check_engine(args)
    token = token_of(args) if server else ""
    there = Places(args)
    with launching(quiet=args.quiet, patience=args.launch_timeout, token=token) as launches:
        for place in places:
            kind, command = args.systems[place]
            name = args.name[place] if place < len(args.name) else ""
            if kind != "launch":
                name = name or bridge_label(kind, command)
                command = bridge_command(bridge_at(args, place), kind, command, name)
            where = there.of(place) if kind == "launch" else None
            for _ in range(copies_of(args, place)):
                launches.start(command, name, folder_at(args, place), where)
        yield launches


def _launched(args: argparse.Namespace, launches: "Launches") -> dict[int, tuple[str, str]]:
    """Wait for what was launched; return where it is, replicas with commas between, and its log."""
    from cbench_server.cli.replicas import copies_of

    found = iter(launches.wait())
    launched = {}
    for place in _places(args):
        copies = [next(found) for _ in range(copies_of(args, place))]
        targets = [each.target for each in copies]
        if len(copies) > 1 and any(each.startswith("attached:") for each in targets):
            raise UsageError("--replicas is for systems that listen, and this one attaches itself.")
        launched[place] = (",".join(targets), str(copies[0].output.log))
    return launched


def _dialled(launched: Mapping[int, tuple[str, str]]) -> dict[int, str]:
    """Return where those listen that are not attached."""
    return {
        place: target.partition(",")[0]
        for place, (target, _) in launched.items()
        if not target.startswith("attached:")
    }


def _places(args: argparse.Namespace) -> list[int]:
    """Return where among the systems those are that are launched."""
    return [place for place, (kind, _) in enumerate(args.systems) if kind in _LAUNCHED]


def _is_loopback(server: str) -> bool:
    # Here, so that launched systems start before gRPC is loaded.
    from cbench_client.remote.channel import is_loopback

    return is_loopback(server)
