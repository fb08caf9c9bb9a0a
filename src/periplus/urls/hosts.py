"""Hosts of URLs, registered domains, parts of a crawl by domain, and IP addresses that are not public."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import NamedTuple

import xxhash
from publicsuffixlist import PSLFILE, PublicSuffixList

from periplus.errors import UsageError
from periplus.model.web import HostKey, Origin, Url

# The only module that compares hosts. Functions with a `Url` argument rely on its canonical form (host in lower case, a
# path, no userinfo) and use string operations only, since they run for every link: 0.2 to 0.4 us.

HOST_CACHE_SIZE = 65_536  # cache size: about 20 MB of text at most; a crawl has far fewer hosts at a time
MOST_PARTS = 10_000  # each part has a folder or a schema, and exchanges messages with every other part
METADATA = "cloud metadata"  # returns credentials of the machine to any program on it
NOT_GIVEN_OUT = "not global unicast"
_IPV4 = [  # the first matching block counts
    (IPv4Network(block), name)
    for block, name in (
        ("169.254.169.254", METADATA),  # of most providers
        ("169.254.170.2", METADATA),  # of containers at Amazon
        ("168.63.129.16", METADATA),  # the host of a virtual machine at Azure; a public address
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
        ("::ffff:0:0:0/96", "IPv4-translated"),  # RFC 2765
        ("100::/64", "discard-only"),
        ("100:0:0:1::/64", "dummy prefix"),
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "private use"),  # the registry calls it unique-local
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),  # deprecated by RFC 3879, but still routed within sites
        ("ff00::/8", "multicast"),
    )
]
_GLOBAL_UNICAST = IPv6Network("2000::/3")


def _authority(url: Url) -> str:
    """`name` or `name:port`, without the final dot of a fully qualified name.

    The search from 8 works for both schemes, since the host has at least one character.
    """
    authority = url[8 if url[4] == "s" else 7 : url.find("/", 8)]
    if authority[-1] == "." or ".:" in authority:
        name, colon, port = authority.partition(":")
        return _without_dot(name) + colon + port
    return authority


def _has_port(authority: str) -> bool:
    return ":" in authority and authority[-1] != "]"


@lru_cache(maxsize=4096)  # asked four times in a row for a new link
def host_key(url: Url) -> HostKey:
    """`name:port`, always with the port; IPv6 in brackets: `example.org:443`, `[::1]:8080`."""
    authority = _authority(url)
    if _has_port(authority):
        return HostKey(authority)
    return HostKey(authority + (":443" if url[4] == "s" else ":80"))


def origin_of(url: Url) -> Origin:
    """`scheme://name:port`, always with the port."""
    return Origin(("https://" if url[4] == "s" else "http://") + host_key(url))


def root_of(url: Url) -> Url:
    """The root URL of the server: `https://example.org/`."""
    return Url(url[: url.index("/", 8) + 1])


def host_url(host: HostKey) -> Url:
    """A root URL of the host. Only its port matters to sites, not its scheme."""
    name, _, port = host.rpartition(":")
    return Url(f"https://{name}/" if port in ("443", "80") else f"https://{host}/")


def host_name(url: Url) -> str:
    """The host without port and final dot, as in the URL: IPv6 in brackets."""
    authority = _authority(url)
    return authority[: authority.rindex(":")] if _has_port(authority) else authority


def path_and_query(url: Url) -> str:
    """The request target, as in the request line and robots.txt; starts with `/`."""
    return url[url.index("/", 8) :]


def without_www(host: str) -> str:
    """The host without a leading `www.`, unless only a public suffix would be left (`www.com` is unchanged)."""
    if not host.startswith("www."):
        return host
    rest = host[4:]
    return host if _is_public_suffix(rest.partition(":")[0]) else rest


@lru_cache(maxsize=HOST_CACHE_SIZE)
def is_ip(host: str) -> bool:
    """Whether the host is an IP address: IPv4, or IPv6 with or without brackets."""
    try:
        ipaddress.ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        return False
    return True


@cache
def _rules() -> str:
    """The lines of the bundled public suffix list, each with its line feed."""
    return Path(PSLFILE).read_text("utf-8") + "\n"


def _suffixes(name: str) -> PublicSuffixList:
    """The rules of the public suffix list that may concern a name.

    They include the private part: alice.github.io and bob.github.io have different owners.
    """
    return _suffixes_below(name.lower().rpartition(".")[2], "xn--" in name)


@lru_cache(maxsize=2048)
def _suffixes_below(top: str, encoded: bool) -> PublicSuffixList:
    """The rules of a top level domain. The whole list takes 17 ms, and 50 with names in punycode."""
    with contextlib.suppress(UnicodeError):
        top = top.encode().decode("idna") if top.startswith("xn--") else top
    starts = _rules().split(f"{top}\n")[:-1]  # each ends with the first part of a rule
    return PublicSuffixList([start.rpartition("\n")[2] + top for start in starts], accept_encoded_idn=encoded)


@lru_cache(maxsize=HOST_CACHE_SIZE)
def registered_domain(host: str) -> str:
    """The registered domain: `example.co.uk` for `a.b.example.co.uk`. IP addresses, public suffixes and single labels
    (`localhost`) are returned unchanged. Source: publicsuffix.org, unknown top level domains by its rule `*`."""
    name = _without_dot(host)
    if is_ip(name) or "." not in name:
        return name
    return _suffixes(name).privatesuffix(name) or name


@cache
def _registries(encoded: bool) -> PublicSuffixList:
    """The ICANN part of the list: suffixes of registries, without private ones."""
    return PublicSuffixList(accept_encoded_idn=encoded, only_icann=True)


@lru_cache(maxsize=HOST_CACHE_SIZE)
def registry_suffix(host: str) -> str:
    """The registry's suffix of a host name: `ac.uk` for `www.inf.ed.ac.uk`, `io` for `ann.github.io`.

    Empty for IP addresses and single labels.
    """
    name = _without_dot(host)
    if is_ip(name) or "." not in name:
        return ""
    return _registries("xn--" in name).publicsuffix(name) or ""


@lru_cache(maxsize=HOST_CACHE_SIZE)
def _is_public_suffix(name: str) -> bool:
    return not is_ip(name) and _suffixes(name).privatesuffix(name) is None


def is_within(host: str, domain: str) -> bool:
    """Whether host is the domain or a subdomain of it. Public suffixes and IP addresses have no subdomains
    (`example.com` is not within `com`). Ignores case and a final dot."""
    host, domain = _without_dot(host), _without_dot(domain)
    if host == domain:
        return domain != ""
    return host.endswith("." + domain) and not is_ip(domain) and not is_ip(host) and not _is_public_suffix(domain)


def is_named(host: HostKey, names: frozenset[str]) -> bool:
    """Whether names, in the form of `scope.own_hosts`, include the host, with or without port, or a `*.` above it."""
    name = host.rpartition(":")[0]
    if not names.isdisjoint((host, name)):
        return True
    return any(name.endswith(pattern[1:]) for pattern in names if pattern.startswith("*."))


def is_listed_suffix(name: str) -> bool:
    """Whether the name is in the public suffix list: `com`, `co.uk`, `github.io`, but not `intranet`.

    The rule `*`, by which unknown top level domains are suffixes, does not count.
    """
    return _suffixes(name).publicsuffix(name, accept_unknown=False) == name


def _without_dot(host: str) -> str:
    """The host in lower case, without a final dot."""
    return host.lower().removesuffix(".") or host  # `http://./` is a valid URL


# Our own table of special networks: the one in Python's `ipaddress` depends on its release, and lacks blocks that have
# been special for years.
#
# Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries as of 2025-10-09, every block that is not globally
# reachable; multicast and reserved space from the IANA address space registries; the documentation of cloud providers
# on metadata services. Only 2000::/3 of IPv6 is allocated (RFC 4291, 2.4), so all else is refused, listed here or not.
# The few reachable addresses within 192.0.0.0/24 and 2001::/23 are anycast for protocols other than HTTP, and are
# refused with their block.


_MAPPED, _NAT64 = IPv6Address("::ffff:0:0").packed[:12], IPv6Address("64:ff9b::").packed[:12]
_LOCAL_NAT64, _TEREDO, _6TO4 = (
    IPv6Address("64:ff9b:1::").packed[:6],
    IPv6Address("2001::").packed[:4],
    IPv6Address("2002::").packed[:2],
)


@lru_cache(maxsize=1024)  # saves 12 us per page if all hosts are on one machine
def special_network(address: str) -> str:
    """The special network of an IP address, or of an IPv4 address embedded in it; empty: it is public.

    A `%zone` is ignored.
    """
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv4Address):
        return next((name for block, name in _IPV4 if ip in block), "")
    inner = [special_network(str(IPv4Address(octets))) for octets in _ipv4_within(ip.packed)]
    if inner:
        return next(filter(None, inner), "")
    return next((name for block, name in _IPV6 if ip in block), "" if ip in _GLOBAL_UNICAST else NOT_GIVEN_OUT)


def _ipv4_within(octets: bytes) -> Iterator[bytes]:
    """The IPv4 addresses that are embedded in an IPv6 address for translation or tunnelling."""
    if octets.startswith((_MAPPED, _NAT64)):
        yield octets[12:]
    elif octets.startswith(_LOCAL_NAT64):  # the operator chooses the length of the prefix: RFC 6052, 2.2
        yield octets[12:]
        for prefix in (6, 7, 8):  # octets; the ninth is skipped, and zeros follow the address
            if not any(octets[prefix + 5 :]):
                yield (octets[prefix:8] + octets[9:])[:4]
    elif octets.startswith(_6TO4):
        yield octets[2:6]
    elif octets.startswith(_TEREDO):  # the server, and the client with inverted bits: RFC 4380, 4
        yield octets[4:8]
        yield bytes(octet ^ 0xFF for octet in octets[12:])


class WebPart(NamedTuple):
    """Part `number` of `of` collections that share a crawl, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_part(text: str) -> WebPart:
    """Parses `2/4`. Raises UsageError."""
    number, slash, of = text.partition("/")
    if slash and all(word.isascii() and word.isdigit() and len(word) < 6 for word in (number, of)):
        part = WebPart(int(number), int(of))
        if 1 <= part.number <= part.of <= MOST_PARTS:
            return part
    raise UsageError(f"{text!r} is not a part: write 2/4 for the second of four (at most {MOST_PARTS:,})")


@lru_cache(maxsize=HOST_CACHE_SIZE)
def part_of(host: HostKey, parts: int) -> int:
    """The number of the part to which a host belongs, 1 to `parts`.

    By registered domain, so that all hosts of an owner are in the same part: part k has the k-th of equal ranges of
    64-bit hashes (xxh3, seed 0, of the domain in UTF-8). Stored collections depend on this function. Doubling the
    number of parts halves each range.
    """
    domain = registered_domain(host.rpartition(":")[0])
    return (xxhash.xxh3_64_intdigest(domain.encode("utf-8", "surrogatepass")) * parts >> 64) + 1
