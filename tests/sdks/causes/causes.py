"""Asks a daemon for a run that it does not have, and prints which error came of it."""

import sys

from cbench_client import BenchClient, ClientError, Tls

address, token, secured, ca, milliseconds = sys.argv[1:]
tls = Tls.from_files(ca or None) if secured else None
try:
    client = BenchClient(address, token=token, tls=tls, timeout=int(milliseconds) / 1000)
    client.get("no-such-run")
except ClientError as error:
    print(type(error).__name__, error.reason)
