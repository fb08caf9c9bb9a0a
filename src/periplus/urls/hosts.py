"""Hosts that URLs name, whether one lies within another, and which addresses are not of the public internet."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from publicsuffixlist import PublicSuffixList

from periplus.model.web import HostKey, Origin, Url

# The only place where hosts are compared. Functions that take a `Url` rely on its canonical form (a host in lower case,
# a path, no userinfo) and are plain work on text, since they run once a link: 0.2 to 0.4 us.

HOSTS_REMEMBERED = 65_536  # about 20 MB of text at worst; a crawl meets far fewer hosts at a time


def _authority(url: Url) -> str:
    """`name` or `name:port`; the host has at least one character, so that a search from 8 suits both schemes.

    Without the dot that marks a name as complete: the two are one host.
    """
    authority = url[8 if url[4] == "s" else 7 : url.find("/", 8)]
    if authority[-1] == "." or ".:" in authority:
        name, colon, port = authority.partition(":")
        return _plain(name) + colon + port
    return authority


def _has_port(authority: str) -> bool:
    return ":" in authority and authority[-1] != "]"


def host_key(url: Url) -> HostKey:
    """`name:port`, the port always said; IPv6 in brackets: `example.org:443`, `[::1]:8080`."""
    authority = _authority(url)
    if _has_port(authority):
        return HostKey(authority)
    return HostKey(authority + (":443" if url[4] == "s" else ":80"))


def origin_of(url: Url) -> Origin:
    """`scheme://name:port`, the port always said."""
    return Origin(("https://" if url[4] == "s" else "http://") + host_key(url))


def root_of(url: Url) -> Url:
    """The URL of the server's own first page: `https://example.org/`."""
    return Url(url[: url.index("/", 8) + 1])


def host_name(url: Url) -> str:
    """The host without its port and last dot, as the URL writes it: IPv6 in brackets."""
    authority = _authority(url)
    return authority[: authority.rindex(":")] if _has_port(authority) else authority


def path_and_query(url: Url) -> str:
    """What a request line and robots.txt see: starts with `/`."""
    return url[url.index("/", 8) :]


def without_www(host: str) -> str:
    """The host without a leading `www.`, unless nothing but a public suffix would be left (`www.com` stays)."""
    if not host.startswith("www."):
        return host
    rest = host[4:]
    return host if _is_public_suffix(rest.partition(":")[0]) else rest


@lru_cache(maxsize=HOSTS_REMEMBERED)
def is_ip(host: str) -> bool:
    """Whether the host is an address: IPv4 with dots, or IPv6 with or without brackets."""
    try:
        ipaddress.ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        return False
    return True


@cache
def _suffixes(encoded: bool) -> PublicSuffixList:
    """The list that the package bundles, with names in punycode among it or without (17 ms to read instead of 50),
    so only when it is first needed.

    Its private part counts: alice.github.io and bob.github.io belong to different people.
    """
    return PublicSuffixList(accept_encoded_idn=encoded)


@lru_cache(maxsize=HOSTS_REMEMBERED)
def registered_domain(host: str) -> str:
    """What somebody registered: `example.co.uk` for `a.b.example.co.uk`. Addresses, public suffixes and single names
    (`localhost`) are their own. Source: publicsuffix.org, unknown top level domains by its rule `*`."""
    name = _plain(host)
    if is_ip(name) or "." not in name:
        return name
    return _suffixes("xn--" in name).privatesuffix(name) or name


@cache
def _registries(encoded: bool) -> PublicSuffixList:
    """The public part of the list alone: what registries run, without what others let below their own names."""
    return PublicSuffixList(accept_encoded_idn=encoded, only_icann=True)


@lru_cache(maxsize=HOSTS_REMEMBERED)
def registry_suffix(host: str) -> str:
    """Under what a registry registered the host's name: `ac.uk` for `www.inf.ed.ac.uk`, `io` for `ann.github.io`.

    Empty for addresses and single names.
    """
    name = _plain(host)
    if is_ip(name) or "." not in name:
        return ""
    return _registries("xn--" in name).publicsuffix(name) or ""


@lru_cache(maxsize=HOSTS_REMEMBERED)
def _is_public_suffix(name: str) -> bool:
    return not is_ip(name) and _suffixes("xn--" in name).privatesuffix(name) is None


def is_within(host: str, domain: str) -> bool:
    """Whether host is domain or lies below it, label by label: never `notexample.org` in `example.org`, never below a
    public suffix (`example.com` is not within `com`) nor below an address. Case and one last dot do not count."""
    host, domain = _plain(host), _plain(domain)
    if host == domain:
        return domain != ""
    return host.endswith("." + domain) and not is_ip(domain) and not is_ip(host) and not _is_public_suffix(domain)


def is_named(host: HostKey, names: frozenset[str]) -> bool:
    """Whether names, as `scope.own_hosts` writes them, has the host: itself, with its port, or what it lies below."""
    name = host.rpartition(":")[0]
    if not names.isdisjoint((host, name)):
        return True
    return any(name.endswith(pattern[1:]) for pattern in names if pattern.startswith("*."))


@cache
def _suffixes_listed() -> PublicSuffixList:
    """Without the rule that an unknown top level domain is a suffix too."""
    return PublicSuffixList(accept_unknown=False)


def is_listed_suffix(name: str) -> bool:
    """Whether the public suffix list has this name: `com`, `co.uk`, `github.io`, and not `intranet`."""
    return _suffixes_listed().publicsuffix(name) == name


def _plain(host: str) -> str:
    """Lower case, without the dot that marks a name as complete."""
    return host.lower().removesuffix(".") or host  # `http://./` names a host, oddly enough


# A table of our own: that of Python's `ipaddress` differs by its release, and lets through what
# has been special for years.
#
# Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries as of 2025-10-09, every block that is not globally
# reachable; multicast and reserved space from the IANA address space registries; what cloud providers document of their
# metadata services. Of IPv6 only 2000::/3 has ever been given out (RFC 4291, 2.4), so all else is refused, named here
# or not. The few reachable addresses within 192.0.0.0/24 and 2001::/23 are anycast for other protocols than HTTP, and
# are refused with their block.

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
_LOCAL_NAT64, _TEREDO, _6TO4 = (
    IPv6Address("64:ff9b:1::").packed[:6],
    IPv6Address("2001::").packed[:4],
    IPv6Address("2002::").packed[:2],
)


@lru_cache(maxsize=1024)  # 12 us a page where all hosts are on one machine
def special_network(address: str) -> str:
    """Which special network an IP address lies in, or leads into by an IPv4 address within it; empty: it is public.

    `%zone` does not count.
    """
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
