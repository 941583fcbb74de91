"""Gates of a run file, checked at the end of its run."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cbench_server.cli.exits import UsageError
from cbench_server.comparison.policies import parse_policy

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_server.spec import Run

AtEnd = Callable[["BenchClient", "Run"], int]


def check_gate(gate: dict[str, Any]) -> None:
    """Refuse policies that cannot be read, before a run that they are for."""
    if gate and not gate.get("policies"):
        raise UsageError('the gate of the run file has no `policies`, such as "f1 at least 0.6".')
    for text in gate.get("policies", []):
        parse_policy(text)


def at_end(gate: dict[str, Any], output: str) -> AtEnd | None:
    """Return what checks a gate; None without one."""
    if not gate:
        return None

    def check(client: "BenchClient", run: "Run") -> int:
        from cbench_server.cli.commands.gate import checked, drawn

        policies = [parse_policy(text) for text in gate["policies"]]
        found = checked(
            client,
            run,
            policies,
            system=gate.get("system", ""),
            baseline=gate.get("baseline", ""),
            baseline_system=gate.get("baseline_system", ""),
            junit=gate.get("junit", ""),
        )
        # What is printed for programs stays as it is.
        print(drawn(found, run), file=sys.stdout if output == "table" else sys.stderr)
        return found.exit_code()

    return check


def gate_of(run: "Run") -> dict[str, Any]:
    """Return the gate that a run was started with; empty where there is none."""
    from cbench_server.cli.run_files.reading import BadFile, parse_document
    from cbench_server.spec import RUN_FILE_LABEL

    text = run.spec.labels.get(RUN_FILE_LABEL, "")
    try:
        found: dict[str, Any] = parse_document(text).get("gate", {}) if text else {}
    except BadFile:
        return {}
    # Where to write files is said on the command line only.
    return {key: value for key, value in found.items() if key != "junit"}
