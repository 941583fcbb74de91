"""Checks of this machine as a node that scores: can programs under test be locked in here?"""

import os
from collections.abc import Iterator
from importlib.util import find_spec

from cbench_server import __version__
from cbench_server.cli.findings import Finding
from cbench_server.cluster.messages import SANDBOX
from cbench_server.lazy_imports import command_for
from cbench_server.sandbox.client import SandboxUnavailable, shared_sandbox
from cbench_server.sandbox.proof import prove


def sandbox_finding(policy: str) -> Finding:
    """Run programs that try to get out, and say in which tier they were held."""
    try:
        tier = prove(shared_sandbox(policy))
    except SandboxUnavailable as error:
        fix = "Evaluators that run programs fail here; all others work."
        return Finding("warn", "sandbox", str(error), fix)
    held = []
    if tier.network == "none":
        held.append("the network")
    if tier.filesystem != "host":
        held.append("files")
    if tier.is_split_sound:
        held.append("processes")
    what = f"; tried in vain: {', '.join(held)}" if held else "; nothing is kept from them"
    return Finding("ok", "sandbox", f"programs run, in tier {tier.name}{what}")


def node_findings(policy: str) -> Iterator[Finding]:
    """Check what a Ray node needs, and say how to start one."""
    yield Finding("ok", "version", f"cbench-server {__version__}; the daemon needs the same")
    if find_spec("ray") is None:
        yield Finding("fail", "ray", "not installed", f"Install it: {command_for('ray')}")
    else:
        yield Finding("ok", "ray", "installed")
    found = sandbox_finding(policy)
    yield found
    cpus = os.cpu_count() or 1
    start = f"ray start --address HOST:PORT --num-cpus {cpus}"
    if found.status == "ok":
        yield Finding("ok", "start it with", f"{start} --resources '{{\"{SANDBOX}\": {cpus}}}'")
    else:
        yield Finding(
            "fail",
            "start it with",
            f"{start} (without {SANDBOX}: programs under test must not run here)",
            "Allow user namespaces or Landlock, and run this again.",
        )
