"""Dialling: which addresses this process connects to when a spec names them, and that it is those.

A name is looked up once, every address it has is judged, and one of those is dialled: whoever
answers for the name cannot say something else the second time.
"""

import asyncio
import functools
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cbench_server.errors import InvalidInput, InvalidSpec, SystemUnreachable

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# Where machines of clouds hand out their credentials, apart from the link-local ones.
_METADATA = {
    ipaddress.ip_address(text)
    for text in (
        *("100.100.100.200", "168.63.129.16", "192.0.0.192"),
        *("fd00:ec2::254", "fd20:ce::254", "fd00:42::42"),
    )
}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Translators of one's own, whose prefix may have any of these lengths (RFC 8215, RFC 6052).
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
_LOCAL_LENGTHS = (48, 56, 64, 96)
_COMPATIBLE = ipaddress.ip_network("::/96")
_TRY_S = 1.0
_LAST_PORT = 65_535

_NAME = re.compile(r"(?=.{1,253}$)(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_TARGET = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/%,]+)):([0-9]{1,5})")
_SOCKETS = ("unix:", "unix-abstract:")
_ANY_SOCKET = "unix:"


class NotDialled(InvalidSpec):
    """An address is one that the daemon does not dial."""


@dataclass(frozen=True)
class Rule:
    """One entry of `dial_allow` or `dial_deny`: a network, an address, a name, or all sockets."""

    text: str
    network: IPNetwork | None = None

    @classmethod
    def read(cls, text: str) -> "Rule":
        """Read `10.0.0.0/8`, `10.1.2.3`, `[::1]`, `models.example`, `*.example` or `unix:`."""
        text = text.strip().lower()
        if text == _ANY_SOCKET:
            return cls(text)
        try:
            return cls(text, ipaddress.ip_network(text.strip("[]"), strict=False))
        except ValueError:
            pass
        if not _NAME.fullmatch(text.removeprefix("*.")):
            raise InvalidInput(
                f'"{text}" is not a valid address to allow or deny; write a network such as '
                "10.0.0.0/8, an address, a name, *.NAME, or unix: for sockets of this machine"
            )
        return cls(text.rstrip("."))

    def covers(self, host: str, address: IPAddress, *, all_meanings: bool = True) -> bool:
        """Whether it speaks of an address, or of the name that led to it.

        Of one that a translator on the way takes for another, of both or of itself alone.
        """
        if self.network is not None:
            meanings = _meanings(address) if all_meanings else _here(address)
            return any(each in self.network for each in meanings)
        name = host.lower().rstrip(".")
        if self.text.startswith("*."):
            return name.endswith(self.text[1:])
        return name == self.text


@dataclass(frozen=True)
class Dialling:
    """What may be dialled: all but link-local and metadata addresses, unless lists say more.

    With an `allow` list only what it covers; `deny` wins over it.
    """

    allow: Sequence[Rule] = ()
    deny: Sequence[Rule] = ()
    has_sockets: bool = True
    """Whether unix sockets may be dialled."""

    @classmethod
    def of(
        cls, allow: Iterable[str], deny: Iterable[str], *, has_sockets: bool = True
    ) -> "Dialling":
        """Read both lists."""
        return cls(_read(allow), _read(deny), has_sockets)

    def judge(self, host: str, address: IPAddress) -> None:
        """Raise NotDialled unless an address, which `host` stands for, may be dialled."""
        shown = str(address) if host == str(address) else f"{host} ({address})"
        for each in _meanings(address):
            if each.is_link_local:
                raise NotDialled(
                    f"{shown} is a link-local address, which the daemon does not dial. "
                    "Use the system's ordinary address."
                )
            if each in _METADATA:
                raise NotDialled(
                    f"{shown} is where a cloud hands out credentials, which the daemon does not "
                    "dial. Use the system's ordinary address."
                )
        self._judge_rules(
            shown,
            lambda rule: rule.covers(host, address),
            lambda rule: rule.covers(host, address, all_meanings=False),
        )

    def _judge_rules(
        self, shown: str, is_denied: Callable[[Rule], bool], is_allowed: Callable[[Rule], bool]
    ) -> None:
        if any(map(is_denied, self.deny)):
            raise NotDialled(f"{shown} is among what this daemon does not dial (dial_deny).")
        if self.allow and not any(map(is_allowed, self.allow)):
            raise NotDialled(
                f"{shown} is not among what this daemon dials. Its operator can add it to "
                "dial_allow."
            )

    async def addresses(self, host: str) -> list[str]:
        """Return the addresses that a host has, all of them judged; raises OSError for none."""
        # What cannot be looked up raises more than one class.
        try:
            found = await _look_up(host)
        except UnicodeError as error:
            raise NotDialled(f'"{host}" is not a valid host.') from error
        for address in found:
            self.judge(host, address)
        return [str(address) for address in found]

    async def check_host(self, host: str) -> None:
        """Raise NotDialled for a host that may not be dialled; one without address is let be."""
        try:
            await self.addresses(host)
        except OSError:
            return

    async def pin(self, target: str) -> str:
        """Return a gRPC target that leads to one judged address of `target` and nowhere else.

        Of several addresses it is the first that takes a connection.
        """
        if target.startswith(_SOCKETS):
            if not self.has_sockets:
                raise NotDialled(
                    f'"{target}" is a socket of this machine; a daemon that others can reach '
                    "dials none. Serve the system at host:port."
                )
            self._judge_rules(target, _is_for_sockets, _is_for_sockets)
            return target
        places: list[tuple[str, int]] = []
        for host, port in _hosts(target):
            try:
                places += [(address, port) for address in await self.addresses(host)]
            except OSError as error:
                raise SystemUnreachable(
                    f'there is no host "{host}" (from {target}). Check the name.'
                ) from error
        chosen = places[0] if len(places) == 1 else await _answering(places)
        return f"[{chosen[0]}]:{chosen[1]}" if ":" in chosen[0] else f"{chosen[0]}:{chosen[1]}"


def _is_for_sockets(rule: Rule) -> bool:
    return rule.text == _ANY_SOCKET


def _read(texts: Iterable[str]) -> list[Rule]:
    return [Rule.read(text) for text in texts if text.strip()]


_current = [Dialling()]


def dialling() -> Dialling:
    """Return what this process may dial for others."""
    return _current[-1]


def set_dialling(rules: Dialling) -> None:
    """Set it, where the daemon is put together."""
    _current[:] = [rules]


def host_of(target: str) -> str:
    """Return the name or address that a target which was pinned leads to; empty for a socket."""
    return "" if target.startswith(_SOCKETS) else next(_hosts(target))[0]


def _hosts(target: str) -> Iterator[tuple[str, int]]:
    """Take a target apart: each host and port of it, as gRPC would understand them."""
    scheme, rest = "", target
    for known in ("ipv4:", "ipv6:", "dns:///", "dns:"):
        if target.startswith(known):
            scheme, rest = known, target.removeprefix(known)
            break
    # Only lists of addresses are lists; no resolver reads several names.
    for each in rest.split(",") if scheme.startswith("ip") else [rest]:
        found = _TARGET.fullmatch(each)
        # gRPC would take port 99999 for 34463.
        host = (found[1] or found[2]) if found and int(found[3]) <= _LAST_PORT else ""
        if not host or not (_NAME.fullmatch(host) or _is_address(host)):
            raise NotDialled(
                f'"{target}" is not a valid target; write it as host:port, [IPv6]:port or '
                "unix:/path."
            )
        if scheme.startswith("ip") and not _is_address(host):
            raise NotDialled(f'"{host}" in "{target}" is not an address.')
        yield host, int(found[3]) if found else 0


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


async def _look_up(host: str) -> list[IPAddress]:
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    texts = dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found)
    return [ipaddress.ip_address(text) for text in texts]


async def _answering(places: Sequence[tuple[str, int]]) -> tuple[str, int]:
    for host, port in places:
        try:
            async with asyncio.timeout(_TRY_S):
                _, writer = await asyncio.open_connection(host, port)
        except (OSError, TimeoutError):
            continue
        writer.close()
        return host, port
    return places[0]


def _here(address: IPAddress) -> list[IPAddress]:
    """Return the forms of an address that this machine's kernel takes for the same."""
    found = [address]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        found.append(address.ipv4_mapped)
    if any(each.is_unspecified for each in found):
        # It stands for this machine.
        found += [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    return found


@functools.lru_cache(maxsize=1024)
def _meanings(address: IPAddress) -> tuple[IPAddress, ...]:
    """Return an address and those that it leads to by way of a translator or as another form."""
    found = _here(address)
    if isinstance(address, ipaddress.IPv6Address):
        low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if address.sixtofour:
            found.append(address.sixtofour)
        found += address.teredo or ()
        if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
            found += _here(low)
        if address in _LOCAL_NAT64:
            for length in _LOCAL_LENGTHS:
                found += _here(_embedded(address, length))
    return tuple(found)


def _embedded(address: ipaddress.IPv6Address, length: int) -> ipaddress.IPv4Address:
    """Return the IPv4 address behind a prefix of that length; bits 64 to 71 are none of it."""
    octets = [each for place, each in enumerate(address.packed) if place != 8 or length == 96]
    return ipaddress.IPv4Address(bytes(octets[length // 8 : length // 8 + 4]))
