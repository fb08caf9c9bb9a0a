"""The real transport and invalid TLS: refused quickly, before a byte of the request is sent, with the right cause."""

from __future__ import annotations

import contextlib
import ssl
import time

import pytest

from contracts.wire_tools import Talker, carry, curl
from periplus.model.visit import Cause
from periplus.settings import FetchLimits
from testweb import Page, Site, serve, tls

pytestmark = pytest.mark.skipif(not tls.AVAILABLE, reason="needs the openssl program")


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return tls.authority(tmp_path_factory.mktemp("tls"))


def site():
    made = Site("a.test")
    made.add(Page("/", "Home", ("A secret place.",)))
    return made


def asked(certificate, trusted, **identity):
    """(answer of a server with that certificate, number of its requests)."""
    with serve(site(), certificate=certificate) as server:
        transport = curl(server.resolve, ca_file=str(trusted), **identity)
        (response,) = carry(transport, server.url("a.test", "/", tls=True))
        transport.close()
        return response, len(server.log)


def chained(ours):
    """Signed by an intermediate authority, whose certificate is sent along."""
    middle = ours.sign("middle", may_sign=True)
    (ours.folder / "middle.key").write_bytes(middle.read_bytes().partition(b"-----BEGIN CERT")[0])
    return tls.Authority(ours.folder, "middle").sign("leaf"), middle


def test_a_valid_certificate_is_accepted(ours):
    response, requests = asked(ours.sign("good"), ours.trusted)
    assert (response.status, response.cause, requests) == (200, None, 1)


def test_a_valid_chain_is_accepted_and_a_broken_one_refused(ours):
    leaf, middle = chained(ours)
    whole = ours.folder / "whole.pem"
    whole.write_bytes(leaf.read_bytes() + middle.read_bytes().partition(b"-----END PRIVATE KEY-----\n")[2])
    assert asked(whole, ours.trusted)[0].status == 200
    response, requests = asked(leaf, ours.trusted)
    assert (response.cause, response.status, requests) == (Cause.TLS, 0, 0)


BAD = {
    "expired": lambda ours: ours.sign("expired", days=-1),
    "for another host": lambda ours: ours.sign("other", names="DNS:b.test"),
    "for another level": lambda ours: ours.sign("wide", names="DNS:*.a.test"),
    "for an address": lambda ours: ours.sign("address", names="IP:127.0.0.1"),
    "for clients": lambda ours: ours.sign("client", purpose="clientAuth"),
    "self-signed": lambda ours: tls.self_signed(ours.folder),
    "by an unknown authority": lambda ours: tls.authority(ours.folder, "stranger").sign("strange"),
}


@pytest.mark.parametrize("kind", BAD)
def test_an_invalid_certificate_is_refused_before_a_request(ours, kind):
    pem = BAD[kind](ours)
    response, requests = asked(pem, ours.trusted)
    assert (response.cause, response.status, requests) == (Cause.TLS, 0, 0), response
    assert response.detail
    response, requests = asked(pem, ours.trusted, insecure=True)
    assert (response.status, requests) == (200, 1), "it was the certificate alone"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_an_old_protocol_is_refused(ours, newest):
    try:
        context = tls.context(ours.sign("good"), newest=newest)
    except (ValueError, ssl.SSLError):
        pytest.skip("this machine's OpenSSL does not speak it any longer")
    response, requests = asked(context, ours.trusted)
    assert (response.cause, response.status, requests) == (Cause.TLS, 0, 0)


# the beginning of a ServerHello, whose rest never comes
HELLO = b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + bytes(40)
WRECKS = {
    "cut": HELLO,
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "garbage": bytes(range(256)) * 4,
    "nothing": b"",
    "http": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "a record of 65535 bytes": b"\x16\x03\x03\xff\xff" + bytes(65_535),
}


@pytest.mark.parametrize("kind", WRECKS)
def test_a_broken_handshake_is_a_failure(kind):
    served = Talker(lambda connection: connection.sendall(WRECKS[kind]))
    transport = curl((f"a.test:{served.port}:127.0.0.1",))
    (response,) = carry(transport, f"https://a.test:{served.port}/")
    transport.close()
    served.close()
    assert (response.status, response.cause in (Cause.TLS, Cause.RESET)) == (0, True), response
    assert all(b"GET" not in heard for heard in served.heard)


def test_an_endless_handshake_is_limited_by_the_connect_timeout():
    """One byte at a time of a record of sixteen thousand."""

    def drip(connection):
        connection.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")
        with contextlib.suppress(OSError):
            while True:
                time.sleep(0.02)
                connection.sendall(b"\0")

    served = Talker(drip)
    transport = curl(
        (f"a.test:{served.port}:127.0.0.1",),
        FetchLimits(connect_timeout_s=0.5, first_byte_timeout_s=600.0, total_timeout_s=600.0),
    )
    (response,) = carry(transport, f"https://a.test:{served.port}/")
    transport.close()
    assert (response.status, response.cause in (Cause.TIMEOUT, Cause.CONNECT)) == (0, True), response
    served.close()
