"""`cbench gate`: check a run against policies."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import FAILED, OK, UsageError
from cbench_server.cli.files import read_text, write_file
from cbench_server.cli.screen import print_json
from cbench_server.cli.stored_runs import find_run
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
    policies = _policies(args)
    with connect(args) as client:
        run = find_run(client, args.run)
        found = checked(
            client,
            run,
            policies,
            system=args.system,
            baseline=args.baseline or "",
            baseline_system=args.baseline_system,
            junit=args.junit or "",
        )
    if args.output == "json":
        print_json([_plain(each) for each in found.checks])
    else:
        print(drawn(found, run))
    return found.exit_code()


@dataclass(frozen=True)
class Verdicts:
    """What became of the policies for one system."""

    system: str
    checks: list["Check"]
    passed: bool
    unsuited: str
    """Why a policy means nothing for this run; empty if all do."""

    def exit_code(self) -> int:
        """Return whether all hold, or refuse what could not be asked."""
        if self.unsuited:
            raise InvalidInput(self.unsuited)
        return OK if self.passed else FAILED


def checked(
    client: "BenchClient",
    run: "Run",
    policies: list[Policy],
    *,
    system: str,
    baseline: str,
    baseline_system: str,
    junit: str,
) -> Verdicts:
    """Ask the daemon for the verdicts, and write them to a file where one is named."""
    from cbench_server.comparison.gate import to_junit
    from cbench_server.rpc.comparisons import check_from_proto

    found = client.gate(
        run.run_id,
        [policy.text for policy in policies],
        system=system,
        baseline_run_id=find_run(client, baseline).run_id if baseline else "",
        baseline_system=baseline_system,
    )
    checks = [
        check_from_proto(message, policy)
        for message, policy in zip(found.checks, policies, strict=True)
    ]
    if junit:
        write_file(junit, [to_junit(checks, f"{run.run_id}.{found.system}")])
    unsuited = [message.explanation for message in found.checks if message.unsuited]
    return Verdicts(found.system, checks, found.passed, unsuited[0] if unsuited else "")


def drawn(found: Verdicts, run: "Run") -> str:
    """Render the verdicts, one per line, and the overall verdict."""
    checks, system = found.checks, found.system
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


def _plain(each: "Check") -> dict[str, object]:
    return {
        "policy": each.policy.text,
        "verdict": each.verdict,
        "value": each.measured.value,
        "low": each.measured.low,
        "high": each.measured.high,
        "explanation": each.explanation,
    }
