"""Conformance to the contract: cases as data, run against any language over real sockets.

`cases` reads them, `runner` runs them, `steps` holds the operations they name.
Raw messages are used throughout: a client library would hide the faults that
the cases look for.
"""

import os

# Read when gRPC is loaded. Some cases are about handshakes that fail, and
# it would log every one of them.
if os.environ.get("GRPC_VERBOSITY", "ERROR") == "ERROR":  # The command line's own setting.
    os.environ["GRPC_VERBOSITY"] = "NONE"
