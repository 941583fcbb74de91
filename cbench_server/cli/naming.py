"""Runs as a person names them: by id, by the beginning of one, or `last`."""

from cbench_client import BenchClient, Refused
from cbench_server.cli.exits import UsageError

_SHOWN = 5


def find_run(client: BenchClient, text: str) -> str:
    """Return the id of the run meant."""
    if text == "last":
        newest = next(client.list(), None)
        if newest is None:
            raise UsageError("there are no runs yet. Start one with: cbench run")
        return str(newest.run_id)
    try:
        return str(client.get(text).run_id)
    except Refused as error:
        if error.code not in ("NOT_FOUND", "INVALID_ARGUMENT"):
            raise
        found = [run.run_id for run in client.list() if run.run_id.startswith(text)]
        if len(found) > 1:
            some = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
            raise UsageError(f'{len(found)} runs begin with "{text}": {some}.') from None
        if not found:
            raise
        return str(found[0])
