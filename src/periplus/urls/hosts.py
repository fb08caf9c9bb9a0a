"""Which host does a URL name, and does one host lie within another?

The only place where hosts are compared. Functions that take a `Url` rely on its canonical form (a host in lower case, a
path, no userinfo) and are plain work on text, since they run once a link: 0.2 to 0.4 us.
"""

from __future__ import annotations

import ipaddress
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

from periplus.model.web import HostKey, Origin, Url

HOSTS_REMEMBERED = 65_536  # about 20 MB of text at worst; a crawl meets far fewer hosts at a time


def _authority(url: Url) -> str:
    """`name` or `name:port`; the host has at least one character, so that a search from 8 suits both schemes. Without the dot that marks
    a name as complete: the two are one host."""
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
    """The list that the package bundles, with names in punycode among it or without (17 ms to read instead of 50), so only when it
    is first needed. Its private part counts: alice.github.io and bob.github.io belong to different people."""
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
    """Under what a registry registered the host's name: `ac.uk` for `www.inf.ed.ac.uk`, `io` for `ann.github.io`. Empty for
    addresses and single names."""
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


def _plain(host: str) -> str:
    """Lower case, without the dot that marks a name as complete."""
    return host.lower().removesuffix(".") or host  # `http://./` names a host, oddly enough
