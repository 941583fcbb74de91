"""Addresses that the daemon may be asked to dial."""

import asyncio
import ipaddress
import socket

from cbench_server.errors import InvalidSpec


async def check_dialable(host: str) -> None:
    """Refuse a host that is, or resolves to, a link-local address.

    Cloud machines hand out their credentials there, and no system under test
    lives there. A name that does not resolve is left for the dialler to report.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return
    for *_, address in found:
        parsed = ipaddress.ip_address(str(address[0]).partition("%")[0])
        if getattr(parsed, "ipv4_mapped", None):
            parsed = parsed.ipv4_mapped  # type: ignore[union-attr, assignment]
        if parsed.is_link_local or str(parsed) == "fd00:ec2::254":
            raise InvalidSpec(
                f'"{host}" is the link-local address {parsed}, which the daemon does not dial. '
                "Use the system's ordinary address."
            )


def host_of_target(target: str) -> str | None:
    """Return the host a gRPC target names, None for a unix socket."""
    if target.startswith(("unix:", "unix-abstract:")):
        return None
    address = target.removeprefix("dns:///").removeprefix("dns:").removeprefix("ipv4:")
    address = address.removeprefix("ipv6:")
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.rpartition(":")[0] or address
