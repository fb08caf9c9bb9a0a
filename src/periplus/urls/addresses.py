"""Which addresses are not of the public internet, and what are they?

A table of our own: that of Python's `ipaddress` differs by its release, and lets through what has been special for years.

Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries as of 2025-10-09, every block that is not globally reachable;
multicast and reserved space from the IANA address space registries; what cloud providers document of their metadata services.
Of IPv6 only 2000::/3 has ever been given out (RFC 4291, 2.4), so all else is refused, named here or not. The few reachable addresses
within 192.0.0.0/24 and 2001::/23 are anycast for other protocols than HTTP, and are refused with their block.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

METADATA = "cloud metadata"  # gives credentials of the machine to whoever asks from it
NOT_GIVEN_OUT = "not global unicast"

_IPV4 = [  # the first that holds an address names it
    (IPv4Network(block), name)
    for block, name in (
        ("169.254.169.254", METADATA),  # of most providers
        ("169.254.170.2", METADATA),  # of containers at Amazon
        ("168.63.129.16", METADATA),  # the host of a machine at Azure; an address of public space
        ("100.100.100.200", METADATA),  # of Alibaba
        ("192.0.0.192", METADATA),  # of Oracle
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private use"),
        ("100.64.0.0/10", "shared address space"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private use"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private use"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
]
_IPV6 = [
    (IPv6Network(block), name)
    for block, name in (
        ("fd00:ec2::254", METADATA),  # of Amazon
        ("fd20:ce::254", METADATA),  # of Google
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::/96", "IPv4-compatible"),  # deprecated by RFC 4291, 2.5.5.1
        ("::ffff:0:0:0/96", "IPv4-translated"),  # RFC 2765; such addresses belong on no wire
        ("100::/64", "discard-only"),
        ("100:0:0:1::/64", "dummy prefix"),
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "private use"),  # the registry calls it unique-local
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),  # deprecated by RFC 3879, and still routed within sites
        ("ff00::/8", "multicast"),
    )
]
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_MAPPED, _NAT64 = IPv6Address("::ffff:0:0").packed[:12], IPv6Address("64:ff9b::").packed[:12]
_LOCAL_NAT64, _TEREDO, _6TO4 = IPv6Address("64:ff9b:1::").packed[:6], IPv6Address("2001::").packed[:4], IPv6Address("2002::").packed[:2]


def special_network(address: str) -> str:
    """Which special network an IP address lies in, or leads into by an IPv4 address within it; empty: it is public. `%zone` does not count."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv4Address):
        return next((name for block, name in _IPV4 if ip in block), "")
    inner = [special_network(str(IPv4Address(octets))) for octets in _ipv4_within(ip.packed)]
    if inner:
        return next(filter(None, inner), "")
    return next((name for block, name in _IPV6 if ip in block), "" if ip in _GLOBAL_UNICAST else NOT_GIVEN_OUT)


def _ipv4_within(octets: bytes) -> Iterator[bytes]:
    """The IPv4 addresses to which an IPv6 address may be translated or tunnelled; most have none."""
    if octets.startswith((_MAPPED, _NAT64)):
        yield octets[12:]
    elif octets.startswith(_LOCAL_NAT64):  # whoever runs it chooses the length of its prefix: RFC 6052, 2.2
        yield octets[12:]
        for prefix in (6, 7, 8):  # octets; the ninth is left out, and nothing but zeros follows the address
            if not any(octets[prefix + 5 :]):
                yield (octets[prefix:8] + octets[9:])[:4]
    elif octets.startswith(_6TO4):
        yield octets[2:6]
    elif octets.startswith(_TEREDO):  # the server, and the client with its bits turned over: RFC 4380, 4
        yield octets[4:8]
        yield bytes(octet ^ 0xFF for octet in octets[12:])
