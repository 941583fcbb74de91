"""Under test: which systems of a run are held against controls, and which are only baselines."""

from cbench_server.runs.sweep import point_name
from cbench_server.spec import Run, SystemRef
from cbench_server.systems import is_shipped


def built_in(run: Run) -> dict[str, str]:
    """Return the systems that come with cbench-server, by name, each with what it is."""
    refs = [ref for ref in run.spec.systems if is_shipped(ref.builtin)]
    return {_name(ref): ref.builtin.replace("_", "-") for ref in refs}


def under_test(run: Run) -> list[str]:
    """Return the systems without a role that are not built in; those that are, if all are.

    Points of a sweep are under test, whatever they are.
    """
    points = {name for name, _ in run.config.get("sweep", {}).get("points", ())}
    roles = {_name(ref) for ref in run.spec.systems if ref.role}
    tested = [
        name
        for name in run.systems
        if name not in roles and not run.role_of(name) and not run.is_added(name)
    ]
    ours = built_in(run)
    others = [name for name in tested if name in points or name not in ours]
    return others or tested


def _name(ref: SystemRef) -> str:
    if ref.name or not ref.swept_option:
        return ref.name or ref.builtin
    return point_name(ref.builtin, ref)
