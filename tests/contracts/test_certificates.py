"""Data of a TLS handshake: end and trust of the certificate, old versions of TLS."""

from __future__ import annotations

import ssl
import time
from dataclasses import replace

import pytest

from periplus.acquire.transport import certificate_of
from periplus.api.homes import open_reader
from periplus.api.page_notes import _certificate_notes, take_certificates
from periplus.model.visit import Certificate
from periplus.model.web import HostKey, Url
from periplus.settings import FetchLimits, Identity, Settings
from periplus.store import page_notes
from periplus.urls.hosts import host_key
from periplus.urls.scope import site_key
from periplus_postgres.moving import into_database, silent
from stored import page, stored
from testweb import Page, Site, serve, tls

pytestmark = pytest.mark.skipif(not tls.AVAILABLE, reason="needs the openssl program")
LIMITS = FetchLimits(connect_timeout_s=20.0)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return tls.authority(tmp_path_factory.mktemp("tls"))


def seen(certificate, trusted, **identity):
    site = Site("a.test")
    site.add(Page("/", "Home", ("Words.",)))
    with serve(site, certificate=certificate) as server:
        who = Identity(ca_file=str(trusted), resolve=tuple(server.resolve), allow_private=True)
        shown = certificate_of(server.url("a.test", "/", tls=True), replace(who, **identity), LIMITS)
        return shown, len(server.log)


def test_a_valid_certificate_has_an_end_and_no_request_is_sent(ours):
    shown, requests = seen(ours.sign("good", days=5), ours.trusted)
    assert shown is not None and shown.fault == "" and requests == 0
    assert 4 * 86_400 < shown.ends - time.time() < 6 * 86_400


def test_an_untrusted_certificate_is_recorded(ours):
    for label, changes, words in (
        ("stale", {"days": -1}, "expired"),
        ("other", {"names": "DNS:b.test"}, "subject name"),
    ):
        shown, _ = seen(ours.sign(label, **changes), ours.trusted, insecure=True)
        assert shown is not None and words in shown.fault and shown.ends > 0, shown


def test_private_addresses_and_silent_servers_give_no_certificate(ours):
    assert seen(ours.sign("private"), ours.trusted, allow_private=False)[0] is None
    quick = FetchLimits(connect_timeout_s=1.0)
    assert certificate_of(Url("https://127.0.0.1:9/"), Identity(allow_private=True), quick) is None


def test_recorded_fields_of_a_certificate():
    def codes(certificate):
        return [(note.code, note.words) for note in _certificate_notes(HostKey("a.test:443"), certificate, 0.0)]

    month = 30 * 86_400.0
    assert codes(Certificate(month, False)) == []
    assert codes(Certificate(month / 3, True)) == [("certificate-ends", "a.test"), ("tls-old", "a.test")]
    assert codes(Certificate(month, False, "self-signed")) == [("certificate-fault", "a.test: self-signed")]


def test_old_tls_versions_are_detected(ours, monkeypatch):
    real = tls.context
    pem = ours.sign("old")
    assert seen(pem, ours.trusted)[0].old_tls is False, "Python's own server takes TLS 1.2 and later"

    def old(path, **more):
        made = real(path, **more)
        made.set_ciphers("ALL:@SECLEVEL=0")
        made.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        return made

    monkeypatch.setattr(tls, "context", old)
    shown, _ = seen(pem, ours.trusted)
    assert shown is not None and shown.fault == "" and shown.old_tls


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_a_check_stores_certificates_in_the_collection(ours, kind, request, tmp_path, monkeypatch):
    site = Site("a.test")
    site.add(Page("/", "Home", ("Words.",)))
    with serve(site, certificate=ours.sign("kept", days=5)) as server:
        url = server.url("a.test", "/", tls=True)
        place = folder = stored(tmp_path / "c.periplus", {url: page("Home")}, [url])
        if kind == "database":
            monkeypatch.chdir(tmp_path)
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
            place = request.getfixturevalue("address").text
            into_database(folder, place, silent)
        identity = Identity(ca_file=str(ours.trusted), resolve=tuple(server.resolve), allow_private=True)
        take_certificates(place, {site_key(url)}, replace(Settings(), identity=identity, limits=LIMITS), 7.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    with open_reader(place) as reader:
        [(host, when, certificate)] = page_notes.certificates(reader)
    assert (host, when, certificate.fault) == (host_key(url), 7.0, "") and certificate.ends > time.time()
