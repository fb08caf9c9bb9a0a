"""IP addresses that are not public, by the IANA registries and by the IPv4 address inside an IPv6 address."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.urls.hosts import METADATA, NOT_GIVEN_OUT, special_network

# IANA, 2025-10-09: every block that is not globally reachable, with our name of it
REGISTRY = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared address space",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "6to4 relay",
    "192.168.0.0/16": "private use",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/5": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::/96": "IPv4-compatible",
    "::ffff:0:0:0/96": "IPv4-translated",
    "100::/64": "discard-only",
    "100:0:0:1::/64": "dummy prefix",
    "2001:1::/32": "protocol assignments",
    "2001:10::/28": "protocol assignments",
    "2001:db8::/32": "documentation",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "private use",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local",
    "ff00::/8": "multicast",
    "4000::/3": NOT_GIVEN_OUT,
    "e000::/4": NOT_GIVEN_OUT,
}


@pytest.mark.parametrize("block", REGISTRY)
def test_iana_a_special_block_is_named_from_its_first_address_to_its_last(block):
    network = ipaddress.ip_network(block)
    first, last = network.network_address + (1 if block == "::/96" else 0), network.broadcast_address
    middle = network.network_address + network.num_addresses // 2
    assert {special_network(str(last)), special_network(str(middle))} <= {REGISTRY[block], "broadcast"}
    assert special_network(str(first)) in (REGISTRY[block], "loopback")


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
    ],
)
def test_ours_cloud_metadata_services_are_recognized(address):
    assert special_network(address) == METADATA


EDGES = (
    "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 "
    "169.253.255.255 169.255.0.0 172.15.255.255"
)
MORE_EDGES = (
    "172.32.0.0 191.255.255.255 192.0.1.0 192.31.196.1 192.167.255.255 192.169.0.0 "
    "198.17.255.255 198.20.0.0 223.255.255.255"
)


@pytest.mark.parametrize(
    "address",
    [
        *EDGES.split(),
        *MORE_EDGES.split(),
        *["2001:200::1", "2001:4860:4860::8888", "2606:4700::1", "2a00::1", "3ffe:ffff::1"],
    ],
)
def test_an_address_next_to_a_special_block_is_public(address):
    assert special_network(address) == ""


FORMS = {
    "mapped": "::ffff:{high:x}:{low:x}",
    "NAT64": "64:ff9b::{high:x}:{low:x}",
    "local NAT64, /96": "64:ff9b:1:7:8:9:{high:x}:{low:x}",
    "local NAT64, /64": "64:ff9b:1:7:{a:x}:{b:02x}{c:02x}:{d:02x}00:0",
    "local NAT64, /56": "64:ff9b:1:7{a:02x}:{b:x}:{c:02x}{d:02x}:0:0",
    "local NAT64, /48": "64:ff9b:1:{a:02x}{b:02x}:{c:x}:{d:02x}00:0:0",
    "6to4": "2002:{high:x}:{low:x}::1",
    "Teredo client": "2001:0:808:808:0:1234:{not_high:x}:{not_low:x}",
    "Teredo server": "2001:0:{high:x}:{low:x}:0:1234:f7f7:f7f7",
}


def ipv6_with(form: str, address: str) -> str:
    """An IPv6 address of this form with an IPv4 address inside."""
    a, b, c, d = ipaddress.IPv4Address(address).packed
    high, low = a << 8 | b, c << 8 | d
    return FORMS[form].format(a=a, b=b, c=c, d=d, high=high, low=low, not_high=high ^ 0xFFFF, not_low=low ^ 0xFFFF)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("address", "network"), [("127.0.0.1", "loopback"), ("169.254.169.254", METADATA), ("10.0.0.1", "private use")]
)
def test_an_address_with_a_special_address_inside_is_special(form, address, network):
    named = special_network(ipv6_with(form, address))
    # an address that can be read in several ways has the name of the first special one
    assert named == network or (named and form.startswith("local"))


@pytest.mark.parametrize("form", ["mapped", "NAT64", "local NAT64, /96", "6to4", "Teredo client", "Teredo server"])
def test_an_address_with_a_public_address_inside_is_public(form):
    assert special_network(ipv6_with(form, "8.8.8.8")) == ""


@pytest.mark.parametrize("address", ["fe80::1%eth0", "::ffff:127.0.0.1", "0:0:0:0:0:ffff:a9fe:a9fe", "::127.0.0.1"])
def test_every_spelling_of_an_address_is_recognized(address):
    assert special_network(address)


LEADING = [
    ipaddress.ip_network(block)
    for block in ("::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16")
]


@given(st.ip_addresses())
def test_addresses_that_python_calls_private_are_not_public(address):
    """Python's list depends on its release and is part of ours, except for addresses with another address inside."""
    if (not address.is_global or address.is_multicast) and not any(address in block for block in LEADING):
        assert special_network(str(address))
