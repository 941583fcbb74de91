"""Every word a step may use, whichever module it is in."""

from cbench_server.conformance import (
    gateway_operations,
    operations,
    program_operations,
    server_operations,
)

MODULES = (operations, server_operations, program_operations, gateway_operations)
OPERATIONS = operations.OPERATIONS
KEYS = operations.KEYS
