"""Joining a Ray cluster, and leaving it, from a program that does nothing else."""

import os
import secrets
import threading
from typing import Any, NoReturn

_LEAVE_S = 5.0


def join(address: str, **local: Any) -> None:
    """Join the cluster at an address; `local` starts one here, with what else is given."""
    import ray

    quiet = {"log_to_driver": False, "configure_logging": False, "namespace": "cbench"}
    if address == "local":
        ray.init("local", include_dashboard=False, **local, **quiet)
    else:
        ray.init(address, **quiet)


def leave() -> NoReturn:
    """Leave the cluster, which ends the actors there, and end this program."""
    import ray

    leaving = threading.Thread(target=ray.shutdown, daemon=True)
    leaving.start()
    leaving.join(_LEAVE_S)
    # Threads of Ray may wait for a cluster that is gone.
    os._exit(0)


def variables(address: str) -> dict[str, str]:
    """Return the variables by which Ray is told of tokens and certificates."""
    given = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    if address != "local":
        return given
    # A cluster of our own; without the token, nobody else runs code there.
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)} | given
