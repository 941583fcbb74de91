"""Names of new runs."""

import secrets
import time


def new_run_id(now: float) -> str:
    """Make an id that sorts by time of creation and can be read aloud."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{stamp}-{int(now % 1 * 1000):03d}{secrets.token_hex(3)}"
