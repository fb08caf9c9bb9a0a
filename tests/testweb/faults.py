"""Faults of single URLs. Each function adds a fault to a site, linked from its home page, and to its ground truth."""

from __future__ import annotations

import base64
import email.utils
import gzip
import time
import zlib
from collections.abc import Iterator

from periplus.model.visit import Reason
from testweb.site import Page, Site
from testweb.wire import Answer, Asked, Pause, Raw, Reply, Reset, Step, head, raw

STATUS_REASONS = {
    401: Reason.REFUSED,
    403: Reason.REFUSED,
    404: Reason.NOT_FOUND,
    407: Reason.REFUSED,
    410: Reason.NOT_FOUND,
} | {
    429: Reason.REFUSED,
    451: Reason.REFUSED,
    999: Reason.REFUSED,
}
STILL = b"<!doctype html><title>Still water</title><h1>Still water</h1><p>All is well here, as it turns out.</p>"


def _message(status: int) -> bytes:
    return f"<!doctype html><title>{status}</title><h1>{status}</h1><p>The server says no.</p>".encode()


def _location(target: str) -> tuple[tuple[str, str], ...]:
    return (("Location", target),)


def status(site: Site, path: str, code: int, **fields: str) -> str:
    """Always this status: 404, 410, 500, 403, 999, ... fields: further header fields, `_` for `-`."""
    reason = STATUS_REASONS.get(code, Reason.SERVER_ERROR if 500 <= code < 600 else Reason.CLIENT_ERROR)
    headers = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    return site.answer(path, Answer(code, _message(code), headers=headers), reason)


def bot_wall(site: Site, path: str, code: int = 403) -> str:
    """A bot protection service's challenge in place of the page."""
    return site.answer(path, Answer(code, _message(code), headers=(("CF-Mitigated", "challenge"),)), Reason.BOT_WALL)


def login(site: Site, path: str, user_and_password: str = "pilot:lantern") -> str:
    """401 without authentication (HTTP basic)."""
    key = "Basic " + base64.b64encode(user_and_password.encode()).decode()
    refusal = Answer(401, _message(401), headers=(("WWW-Authenticate", 'Basic realm="chart room"'),))
    return site.answer(
        path, lambda asked: Answer(body=STILL) if asked.headers.get("authorization") == key else refusal, Reason.REFUSED
    )


def passing(site: Site, path: str, code: int = 503, times: int = 1, retry_after: str = "") -> str:
    """The status for the first `times` requests, then a page. retry_after: seconds as text, a date, or `date+N` for N seconds from each answer."""  # noqa: E501

    def reply(asked: Asked) -> Reply:
        if asked.times >= times:
            return Answer(body=STILL)
        wait = retry_after
        if wait.startswith("date+"):
            wait = email.utils.formatdate(time.time() + float(wait[5:]), usegmt=True)
        return Answer(code, _message(code), headers=(("Retry-After", wait),) if wait else ())

    return site.answer(path, reply, Reason.OK)


def redirect_chain(site: Site, path: str, hops: int, end: str, code: int = 302) -> str:
    """path -> path/1 -> ... -> end, `hops` redirects in all; end: a path of the site or a URL."""
    places = [path, *(f"{path}/{number}" for number in range(1, hops)), end]
    for number in range(hops):
        _redirect(site, places[number], places[number + 1], code, "/" if number == 0 else None)
    return site.url(path)


def _redirect(site: Site, path: str, target: str, code: int, linked_from: str | None) -> None:
    url = site.answer(path, Answer(code, _message(code), headers=_location(target)), Reason.REDIRECT, linked_from)
    site.facts.redirects[url] = target if "://" in target else site.url(target)


def redirect_loop(site: Site, path: str, length: int = 2) -> str:
    """A redirect loop of `length` URLs; length 1: to itself."""
    redirect_chain(site, path, length, path)
    for place in [path, *(f"{path}/{number}" for number in range(1, length))]:
        site.facts.reasons[site.url(place)] = Reason.BAD_ANSWER
        site.facts.either.add(site.url(place))  # the crawler may report any link of the loop
    return site.url(path)


def redirect_away(site: Site, path: str, other: Site, other_path: str = "/") -> str:
    """A redirect to a page of another host."""
    return redirect_chain(site, path, 1, other.url(other_path))


def redirect_without_end(site: Site, path: str = "/r") -> str:
    """An endless redirect chain: path?n=1 -> path?n=2 -> ..."""

    def reply(asked: Asked) -> Reply:
        return Answer(302, _message(302), headers=_location(f"{path}?n={int(asked.parameters.get('n', '0')) + 1}"))

    site.facts.traps.add(site.url(path))
    return site.answer(f"{path}", reply, Reason.REDIRECT)


def redirect_badly(site: Site, path: str, location: str | None) -> str:
    """A 302 with a missing (None) or invalid Location."""
    return site.answer(
        path, Answer(302, _message(302), headers=() if location is None else _location(location)), Reason.BAD_ANSWER
    )


def _part(text: str, share: float = 0.6) -> bytes:
    body = (
        f"<!doctype html><title>{text}</title><h1>{text}</h1>".encode()
        + b"<p>The rest of this line was lost at sea.</p>" * 40
    )
    return body[: int(len(body) * share)]


def truncated(site: Site, path: str) -> str:
    """Content-Length is larger than the body; HEAD is answered correctly, and the connection stays open."""
    body = _part("Cut short")
    cut = raw(head(200, ("Content-Length", str(len(body) * 2))), body, status=200)
    return site.answer(path, lambda asked: Answer(200, body) if asked.method == "HEAD" else cut, Reason.TRUNCATED)


def truncated_chunks(site: Site, path: str) -> str:
    """Chunked; the connection closes within the second chunk."""
    body = _part("Chunk lost")
    sent = b"%x\r\n%s\r\n" % (500, body[:500]) + b"400\r\n" + body[500:800]
    return site.answer(path, raw(head(200, ("Transfer-Encoding", "chunked")), sent, status=200), Reason.TRUNCATED)


def truncated_gzip(site: Site, path: str) -> str:
    """A correct Content-Length with a truncated gzip stream."""
    body = gzip.compress(_part("Zipped and cut", 1.0) + bytes(range(256)) * 8, mtime=0)
    body = body[: len(body) * 2 // 3]
    return site.answer(path, Answer(200, body, headers=(("Content-Encoding", "gzip"),), gzip=False), Reason.TRUNCATED)


def wrong_encoding(site: Site, path: str) -> str:
    """Content-Encoding says gzip; the body is plain HTML."""
    return site.answer(
        path, Answer(200, _part("Not zipped", 1.0), headers=(("Content-Encoding", "gzip"),), gzip=False), None
    )


def _bomb(megabytes: int) -> Iterator[Step]:
    """A gzip stream of megabytes MiB of zeros, about 1 KB for each: one block, compressed once and repeated (a full flush lets blocks repeat)."""  # noqa: E501
    block = bytes(1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    yield head(200, ("Content-Encoding", "gzip"))
    yield b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    check = 0
    for _ in range(megabytes):
        check = zlib.crc32(block, check)
        yield packed
    yield b"\x03\x00" + check.to_bytes(4, "little") + (megabytes << 20).to_bytes(8, "little")[:4]


def gzip_bomb(site: Site, path: str, megabytes: int = 800) -> str:
    """A gzip bomb: about 1 KB transferred per decompressed MiB."""
    return site.answer(path, Raw(lambda: _bomb(megabytes), 200), Reason.TRUNCATED)


def long_header(site: Site, path: str, size_bytes: int = 1 << 20) -> str:
    """A header field of size_bytes."""
    return site.answer(path, raw(head(200, ("X-Long", "x" * size_bytes)), STILL, status=200), Reason.BAD_ANSWER)


def many_headers(site: Site, path: str, number: int = 20_000) -> str:
    """Many small header fields."""
    return site.answer(
        path, raw(head(200, *((f"X-{n}", "y" * 40) for n in range(number))), STILL, status=200), Reason.BAD_ANSWER
    )


def _dripping(pause_s: float) -> Iterator[Step]:
    yield head(200)
    yield _part("Drip")
    while True:
        yield Pause(pause_s)
        yield b"<p>drip</p>\n"


def drip(site: Site, path: str, pause_s: float = 0.2) -> str:
    """An endless body, a few bytes at a time."""
    return site.answer(path, Raw(lambda: _dripping(pause_s), 200), Reason.TRUNCATED)


def _flood() -> Iterator[Step]:
    yield head(200)
    yield _part("Flood")
    while True:
        yield b"<p>And the water rose.</p>\n" * 400


def flood(site: Site, path: str) -> str:
    """An endless body at full speed."""
    return site.answer(path, Raw(_flood, 200), Reason.TRUNCATED)


def silent(site: Site, path: str, seconds: float = 3600.0) -> str:
    """Reads the request and sends nothing."""
    return site.answer(path, raw(Pause(seconds)), Reason.UNREACHABLE)


def slow(site: Site, path: str, seconds: float = 1.0) -> str:
    """A page with a late first byte."""
    return site.answer(path, Answer(body=STILL, wait_s=seconds), Reason.OK)


def reset(site: Site, path: str) -> str:
    """Resets the connection instead of answering."""
    return site.answer(path, raw(Reset()), Reason.UNREACHABLE)


def reset_within(site: Site, path: str) -> str:
    """Resets the connection within the body."""
    body = _part("Torn")
    return site.answer(
        path,
        raw(head(200, ("Content-Length", str(len(body) * 2))), body, Pause(0.05), Reset(), status=200),
        Reason.TRUNCATED,
    )


def empty_reply(site: Site, path: str) -> str:
    """Closes the connection without a byte."""
    return site.answer(path, raw(), Reason.UNREACHABLE)


def not_http(site: Site, path: str) -> str:
    """An answer in another protocol."""
    return site.answer(path, raw(b"220 mail.test ESMTP ready\r\n500 what do you mean?\r\n"), Reason.BAD_ANSWER)


FAULT_SITE_HOST = "faults.test"


def faulty_site(host: str = FAULT_SITE_HOST, other: Site | None = None) -> Site:
    """A site with nearly every fault of this module, at descriptive paths, except slow ones (silent, drip)."""
    site = Site(host)
    site.add(Page("/", "Where everything goes wrong", ("Each link below leads to one fault.",)))
    site.add(Page("/good.html", "A quiet page", ("Nothing is wrong with this page.",)), "/")
    for code in (404, 410, 500, 502, 400, 403, 451, 999):
        status(site, f"/status/{code}", code)
    login(site, "/login")
    passing(site, "/once-503")
    redirect_chain(site, "/chain", 3, "/good.html")
    redirect_loop(site, "/loop", 2)
    redirect_loop(site, "/self", 1)
    redirect_badly(site, "/nowhere", None)
    if other is not None:
        redirect_away(site, "/away", other)
    for plant in (
        truncated,
        truncated_chunks,
        truncated_gzip,
        wrong_encoding,
        long_header,
        reset,
        reset_within,
        empty_reply,
        not_http,
    ):
        plant(site, "/" + plant.__name__.replace("_", "-"))
    site.facts.either.add(site.url("/wrong-encoding"))
    return site
