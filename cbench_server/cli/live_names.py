"""Live names for completion: runs, and systems that are attached to a daemon."""

import itertools
from collections.abc import Iterator

from cbench_server.cli.option_names import client_of

_RUNS_SHOWN = 50
_LAST = "last"


def runs(before: list[str]) -> Iterator[str]:
    """Yield `last` and the newest runs of the daemon that is named, or of the store here."""
    yield _LAST
    if (client := client_of(before)) is not None:
        with client:
            yield from [run.run_id for run in itertools.islice(client.list(), _RUNS_SHOWN)]
        return
    from cbench_server.daemon.settings import data_home, load_settings
    from cbench_server.storage.run_ids import newest_run_ids

    yield from newest_run_ids(data_home(load_settings({}).home), _RUNS_SHOWN)


def attached(before: list[str]) -> list[str]:
    """Return what is attached to the daemon that is named."""
    client = client_of(before)
    if client is None:
        return []
    with client:
        components = client.components()
    listed = components.memory_systems if before[:1] == ["memory"] else components.systems
    return [each.name for each in listed if each.location == "attached"]
