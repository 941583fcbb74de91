"""The language cases are written in: every word a step may use, one function for each `do`."""

from cbench_server.conformance.steps import calls, gateway, program, server

MODULES = (calls, server, program, gateway)
OPERATIONS = calls.OPERATIONS
KEYS = calls.KEYS
