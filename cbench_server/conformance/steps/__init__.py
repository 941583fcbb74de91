"""Operations that the steps of a case may name in `do`, one function each."""

from cbench_server.conformance.steps import calls, gateway, program, server

MODULES = (calls, server, program, gateway)
OPERATIONS = calls.OPERATIONS
KEYS = calls.KEYS
