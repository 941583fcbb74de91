"""A daemon driven from Python: runs started and followed, rows read."""

import os

# Read when gRPC is loaded. It would print a line for every handshake that fails, beside the error
# that is raised for it.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
