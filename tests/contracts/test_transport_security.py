"""The real transport behind proxies, and over TLS."""

from __future__ import annotations

import os

import pytest

from contracts.wire_tools import carry, fault_web, talker
from periplus.model.visit import Cause
from testweb import serve, tls

# proxies


def test_a_proxy_gets_the_absolute_url(server, opened):
    with talker(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as proxy:
        (response,) = carry(opened(proxy=f"http://127.0.0.1:{proxy.port}"), "http://far.test/x")
        assert proxy.heard[0].startswith(b"GET http://far.test/x HTTP/1.1\r\n")
    assert (response.status, response.body, response.address) == (200, b"ok", "")


@pytest.mark.parametrize(
    "says", [b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n"]
)
def test_a_proxy_that_refuses_a_tunnel_is_not_the_server(opened, says):
    with talker(says) as proxy:
        (response,) = carry(opened(proxy=f"http://127.0.0.1:{proxy.port}"), "https://far.test/x")
        assert proxy.heard[0].startswith(b"CONNECT far.test:443 ")
    assert (response.status, response.cause) == (0, Cause.PROXY)


def test_a_broken_tunnel_is_a_failure(opened):
    with talker(b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n") as proxy:
        (response,) = carry(opened(proxy=f"http://127.0.0.1:{proxy.port}"), "https://far.test/x")
    assert response.cause is not None
    assert (response.status, response.headers.fields) == (0, ())


def test_a_missing_proxy_is_reported(opened):
    with talker(b"") as gone:
        port = gone.port
    (response,) = carry(opened(proxy=f"http://127.0.0.1:{port}"), "http://far.test/")
    assert response.cause in (Cause.PROXY, Cause.CONNECT)
    (nameless,) = carry(opened(proxy="http://no-such-proxy.invalid:3128"), "http://far.test/")
    assert nameless.cause is Cause.PROXY


def test_proxies_of_the_environment_are_ignored(server, opened, monkeypatch):
    monkeypatch.setitem(os.environ, "http_proxy", "http://127.0.0.1:9")
    assert carry(opened(server.resolve), server.url("a.test", "/good.html"))[0].status == 200


# TLS


@pytest.mark.skipif(not tls.AVAILABLE, reason="needs the openssl program")
def test_certificates_are_verified_by_default(opened, tmp_path):
    pem = tls.self_signed(tmp_path, "a.test")
    with serve(fault_web(), certificate=pem) as server:
        url = server.url("a.test", "/good.html", tls=True)
        (refused,) = carry(opened(server.resolve), url)
        assert (refused.cause, refused.status) == (Cause.TLS, 0)
        assert "certificate" in refused.detail.lower()
        assert carry(opened(server.resolve, insecure=True), url)[0].status == 200
        trusting = opened(server.resolve, ca_file=str(pem))
        assert carry(trusting, url)[0].status == 200
        (other,) = carry(trusting, server.url("b.test", "/", tls=True))
        assert other.cause is Cause.TLS, "the certificate names another host"


def test_a_plain_server_where_tls_is_asked_for(opened):
    with talker(b"HTTP/1.1 400 Bad Request\r\n\r\n") as plain:
        (response,) = carry(opened((f"a.test:{plain.port}:127.0.0.1",)), f"https://a.test:{plain.port}/")
    assert (response.cause, response.status) == (Cause.TLS, 0)
