"""`cbench gate`: check a run against policies."""

import argparse
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import FAILED, OK, UsageError
from cbench_server.cli.files import read_text, write_file
from cbench_server.cli.screen import print_json
from cbench_server.cli.stored_runs import check_system, find_run, rows_of
from cbench_server.comparison.policies import GRAMMAR, Policy, parse_policy, read_policies
from cbench_server.errors import InvalidInput
from cbench_server.texts.grid import printable

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_server.comparison.gate import Check
    from cbench_server.spec import Run

_FORMS = "\n".join(f"  {form}" for form in GRAMMAR)
_POLICIES = f"""\
policies:
{_FORMS}

METRIC is a score such as f1, or: score (the one that counts), pass rate, failures,
context tokens, context compression, cost, mean latency, p50 latency, p95 latency,
p99 latency, labelled rate (with --labels). VALUE is a number, or one with points or %;
times need us, ms, s or min;
against a baseline % is relative to it. The end of the 95% interval that is worse for the run
decides, unless the policy ends with "as measured" or asks for the best there can be, such as
failures at most 0.
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench gate`."""
    parser.epilog = _POLICIES
    parser.set_defaults(handler=gate)
    options.add_run_id(parser)
    parser.add_argument(
        "--policy",
        metavar="TEXT",
        dest="policies",
        help='what must hold, such as "f1 not worse than baseline by more than 1 point"; '
        "repeatable",
        **options.REPEATABLE,
    )
    parser.add_argument(
        "--policy-file",
        metavar="FILE",
        dest="policy_files",
        help="policies, one per line, or as a list `policies` in a .toml file; repeatable",
        **options.REPEATABLE,
    )
    parser.add_argument("--system", metavar="NAME", default="", help="the system to check")
    parser.add_argument("--baseline", metavar="RUN", help="the run to compare with")
    parser.add_argument(
        "--baseline-system",
        metavar="NAME",
        default="",
        help="the system to compare with, of the run itself without --baseline "
        "(default: the one of the same name, or the only one)",
    )
    parser.add_argument("--junit", metavar="FILE", help="also write the verdicts as JUnit XML")
    options.add_output(parser, ("text", "json"))
    options.add_server_flags(parser)


def gate(args: argparse.Namespace) -> int:
    """Check every policy; the exit code says whether all hold."""
    from cbench_server.comparison import score_infos
    from cbench_server.comparison.gate import check, not_measured, to_junit
    from cbench_server.comparison.quantities import Measures
    from cbench_server.reports.judged_gate import judged_check, labelled_rates

    policies = _policies(args)
    with connect(args) as client:
        run = find_run(client, args.run)
        system = _only_system(run, args.system, "--system")
        rows = list(rows_of(client, run.run_id, system=system))
        against = _baseline(client, run, system, args)
        baseline = None
        if against is not None:
            baseline = list(rows_of(client, against[0].run_id, system=against[1]))
    scores = score_infos(run.config.get("datasets", ()))
    measures = Measures(
        rows,
        baseline,
        run.spec.threshold,
        scores,
        estimates=labelled_rates(run, system),
        baseline_estimates=labelled_rates(*against) if against else None,
    )
    checks, trouble = [], None
    for policy in policies:
        try:
            checks.append(judged_check(check(policy, measures), measures, run))
        except InvalidInput as error:
            # The others' verdicts are wanted all the same, by CI above all.
            trouble = trouble or error
            checks.append(not_measured(policy, str(error)))
    if args.junit:
        write_file(args.junit, [to_junit(checks, f"{run.run_id}.{system}")])
    if args.output == "json":
        print_json([_plain(each) for each in checks])
    else:
        print(_text(checks, run, system))
    if trouble is not None:
        raise trouble
    return OK if all(each.passed for each in checks) else FAILED


def _text(checks: list["Check"], run: "Run", system: str) -> str:
    """Render the verdicts, one per line, and the overall verdict."""
    lines = [
        f"{each.verdict}: {printable(each.policy.text)}\n  {printable(each.explanation)}"
        for each in checks
    ]
    kept = sum(each.passed for each in checks)
    verdict = "passes" if kept == len(checks) else "does not pass"
    lines.append(
        f"Run {run.run_id}, {printable(system)}: {verdict}, {kept} of {len(checks)} policies hold"
    )
    return "\n".join(lines)


def _policies(args: argparse.Namespace) -> list[Policy]:
    texts = list(args.policies)
    for name in args.policy_files:
        texts += read_policies(read_text(name), name)
    if not texts:
        raise UsageError(
            'nothing to check: pass --policy, such as "f1 at least 0.6", or --policy-file.'
        )
    return [parse_policy(text) for text in texts]


def _only_system(run: "Run", wanted: str, flag: str) -> str:
    if wanted:
        return check_system(run, wanted)
    if len(run.systems) != 1:
        raise UsageError(
            f"run {run.run_id} has {len(run.systems)} systems ({', '.join(run.systems)}). "
            f"Say which one with {flag}."
        )
    return run.systems[0]


def _baseline(
    client: "BenchClient", run: "Run", system: str, args: argparse.Namespace
) -> "tuple[Run, str] | None":
    """Find the baseline: a system of another run, or another system of the same."""
    if not args.baseline and not args.baseline_system:
        return None
    other = find_run(client, args.baseline) if args.baseline else run
    wanted = args.baseline_system
    if not wanted and system in other.systems:
        wanted = system
    chosen = _only_system(other, wanted, "--baseline-system")
    if (other.run_id, chosen) == (run.run_id, system):
        raise UsageError(
            f'the baseline is the run itself: "{chosen}" of {run.run_id}. Name another run with '
            "--baseline, or another of its systems with --baseline-system."
        )
    return other, chosen


def _plain(each: "Check") -> dict[str, object]:
    return {
        "policy": each.policy.text,
        "verdict": each.verdict,
        "value": each.measured.value,
        "low": each.measured.low,
        "high": each.measured.high,
        "explanation": each.explanation,
    }
