"""Advice on the connection to a system, in fields of the contract.

The client library, by which a system is reached, gives it in its own arguments, which are not
those of whoever asked us.
"""

from cbench_client.errors import split_advice

KEY = "advice"
"""The key in the details of an error under which a command line finds which advice it is."""

FIELD_ADVICE = {
    "USE_TLS": "Set its `tls`, with `tls.ca_pem` for an authority of your own.",
    "DROP_TLS": "Leave out its `tls`, or check the port.",
    "TRUST_AUTHORITY": (
        "Give its authority as `tls.ca_pem`, or the name in its certificate as `tls.server_name`."
    ),
    "PRESENT_CERTIFICATE": (
        "If it asks for a client certificate, let it accept callers without one: a daemon has none "
        "to present."
    ),
    "PRESENT_TOKEN": "Name one of the daemon's credentials as its `credential`.",
}


def in_fields(message: str) -> tuple[str, str]:
    """Give a message with its advice in fields, and the code of the advice, if it has one."""
    problem, code = split_advice(message)
    return (f"{problem} {FIELD_ADVICE[code]}", code) if code else (message, "")
