"""More than fifty misbehaving hosts on one port; http://control.test/truth lists the expected results.

`python tests/whole/fault_hosts.py` serves them until Ctrl-C, and prints the port. Faults of single URLs are in
`testweb.faults`, endless sites in `worlds`; here each fault has its own host, so that one crawl covers all.
"""

from __future__ import annotations

import email.utils
import gzip
import json
import random
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from worlds import TRAPS, World, town

from periplus.model.visit import Reason
from testweb import Answer, Asked, Page, PageLink, Pause, Reset, Site, Web, content, faults, identity, raw, serve
from testweb.wire import Reply, head

CONTROL = "control.test"
DAY_S = 86_400
_WORDS = (
    "anchor",
    "barge",
    "capstan",
    "davit",
    "ensign",
    "fender",
    "gunwale",
    "halyard",
    "inlet",
    "jetty",
    "keel",
    "locker",
    "mizzen",
    "oar",
    "pintle",
    "rudder",
)


@dataclass(slots=True)
class FaultHost:
    """A host. most: limit of requests by a correct crawler; default: three per URL, plus ten."""

    name: str
    what: str
    site: Site
    most: int = 0
    world: World | None = None  # of endless hosts


_BUILDERS: dict[str, tuple[str, Callable[[Site], int | None]]] = {}


def host(what: str) -> Callable[[Callable[[Site], int | None]], Callable[[Site], int | None]]:
    """Decorates a function that adds the misbehaviour of a host named after it; it may return the limit of requests."""

    def keep(plant: Callable[[Site], int | None]) -> Callable[[Site], int | None]:
        _BUILDERS[plant.__name__.replace("_", "-").strip("-")] = (what, plant)
        return plant

    return keep


def text(seed: object, words: int = 80) -> str:
    rng = random.Random(str(seed))
    return " ".join(rng.choice(_WORDS) for _ in range(words)).capitalize() + "."


def sound(site: Site, number: int = 5) -> None:
    """Ordinary pages, linked from the home page and in a ring."""
    for page in range(number):
        links = [PageLink("/", "Home"), PageLink(f"/p{(page + 1) % number}.html", "Next")]
        site.add(Page(f"/p{page}.html", f"Page {page} of {site.host}", (text((site.host, page)),), links), "/")


def before(site: Site, reply: Callable[[Asked], Reply | None]) -> None:
    """Answers every request of the host before its pages, if reply returns an answer."""
    for path, handler in [*site.routes.exact.items()]:
        site.routes.exact[path] = lambda asked, handler=handler: reply(asked) or handler(asked)


# --- time ---


@host("five ordinary pages")
def ordinary(site: Site) -> None:
    sound(site)


@host("two seconds before every answer")
def slow(site: Site) -> None:
    sound(site)
    site.latency_s = 2.0


@host("one page comes a few bytes at a time, without end")
def drip(site: Site) -> None:
    sound(site)
    faults.drip(site, "/drip")


@host("one page never answers")
def silent_page(site: Site) -> None:
    sound(site)
    faults.silent(site, "/silent")


@host("nothing ever answers, not even robots.txt")
def silent(site: Site) -> int:
    site.routes.prefixes["/"] = lambda asked: raw(Pause(3600.0))
    site.routes.exact.clear()
    site.expect("/", Reason.ROBOTS_UNREACHABLE)
    return 12


# --- broken connections ---


@host("each request is reset")
def reset(site: Site) -> int:
    site.routes.exact.clear()
    site.routes.prefixes["/"] = lambda asked: raw(Reset())
    site.expect("/", Reason.ROBOTS_UNREACHABLE)
    return 12


@host("each connection closes without a byte")
def empty(site: Site) -> int:
    site.routes.exact.clear()
    site.routes.prefixes["/"] = lambda asked: raw()
    site.expect("/", Reason.ROBOTS_UNREACHABLE)
    return 12


@host("robots.txt is sound, every page is reset")
def reset_pages(site: Site) -> int:
    site.routes.exact["/"] = lambda asked: raw(Reset())
    site.expect("/", Reason.UNREACHABLE)
    return 12


for _plant in (
    "truncated",
    "truncated_chunks",
    "truncated_gzip",
    "reset_within",
    "not_http",
    "long_header",
    "many_headers",
    "flood",
    "empty_reply",
):

    def _one(site: Site, plant: str = _plant) -> None:
        sound(site)
        getattr(faults, plant)(site, f"/{plant}")

    _one.__name__ = f"page_{_plant}"
    host(f"one page: {getattr(faults, _plant).__doc__}")(_one)


# --- statuses and retries ---


@host("each URL returns 500 first, then a page")
def flaky(site: Site) -> None:
    sound(site)
    before(site, lambda asked: Answer(500, b"No.") if asked.times == 0 else None)


@host("each URL returns 429 twice, Retry-After 2 seconds")
def too_many(site: Site) -> None:
    sound(site, 3)
    before(site, lambda asked: Answer(429, b"No.", headers=(("Retry-After", "2"),)) if asked.times < 2 else None)


@host("each URL returns 503 once, Retry-After a date three seconds ahead")
def later(site: Site) -> None:
    sound(site, 3)

    def reply(asked: Asked) -> Answer | None:
        when = email.utils.formatdate(time.time() + 3, usegmt=True)
        return Answer(503, b"No.", headers=(("Retry-After", when),)) if asked.times == 0 else None

    before(site, reply)


@host("429 after three requests in a second")
def rate_limit(site: Site) -> None:
    sound(site, 12)
    asked_at: list[float] = []

    def reply(asked: Asked) -> Answer | None:
        asked_at.append(time.monotonic())
        return (
            Answer(429, b"No.", headers=(("Retry-After", "1"),))
            if len([one for one in asked_at if one > asked_at[-1] - 1]) > 2
            else None
        )

    before(site, reply)


@host("every status that is an error")
def statuses(site: Site) -> None:
    sound(site, 2)
    for code in (400, 403, 404, 405, 406, 410, 451, 500, 501, 502, 505, 999):
        faults.status(site, f"/status/{code}", code)
    faults.login(site, "/login")


# --- redirects ---


@host("chains of one to ten, one too long, relative and absolute, of every status")
def chains(site: Site) -> None:
    sound(site, 2)
    for hops in (1, 3, 5, 10):
        faults.redirect_chain(site, f"/chain-{hops}", hops, "/p0.html")
    for code in (301, 303, 307, 308):
        faults.redirect_chain(site, f"/code-{code}", 1, "/p1.html", code)


@host("redirects in a circle, to themselves, to nowhere")
def circles(site: Site) -> None:
    sound(site, 2)
    faults.redirect_loop(site, "/self", 1)
    faults.redirect_loop(site, "/pair", 2)
    faults.redirect_badly(site, "/without", None)
    faults.redirect_badly(site, "/malformed", "http://[::1")


@host("a redirect that makes its own address longer, for ever")
def growing(site: Site) -> int:
    sound(site, 2)
    faults.redirect_without_end(site)
    return 50


# --- endless series ---


for _name in [name for name in TRAPS if name != "search"]:

    def _endless(site: Site) -> int:
        return 800

    _endless.__name__ = f"endless_{_name}"
    host(f"without end: {TRAPS[_name].__doc__}")(_endless)


# --- bytes ---


@host("one text per language in three charsets, declared in the header, in meta, or not at all")
def charsets(site: Site) -> None:
    content.charsets(site)
    content.charset_lie(site)


@host("gzip, deflate, raw deflate, gzip twice, chunks with extensions and trailers")
def codings(site: Site) -> None:
    sound(site, 2)
    body = f"<!doctype html><title>Packed</title><p>{text('packed', 200)}".encode()
    bare = zlib.compressobj(9, zlib.DEFLATED, -15)
    for name, packed in (
        ("gzip", gzip.compress(body, mtime=0)), ("deflate", zlib.compress(body)),
        ("deflate", bare.compress(body) + bare.flush()),
        ("gzip, gzip", gzip.compress(gzip.compress(body, mtime=0), mtime=0)),
    ):  # fmt: skip
        path = f"/{len(site.routes.exact)}-{name.replace(', ', '-')}"
        site.answer(path, Answer(body=packed, headers=(("Content-Encoding", name),), gzip=False), Reason.OK)
    size = f"{len(body):x}".encode()
    chunked = head(200, ("Transfer-Encoding", "chunked"))
    site.answer("/extension", raw(chunked, size + b";name=value\r\n" + body + b"\r\n0\r\n\r\n", status=200), Reason.OK)
    site.answer(
        "/trailer", raw(chunked, size + b"\r\n" + body + b"\r\n0\r\nX-Trailer: yes\r\n\r\n", status=200), Reason.OK
    )


@host("a megabyte that becomes eight hundred")
def bomb(site: Site) -> None:
    sound(site, 2)
    faults.gzip_bomb(site, "/bomb")


@host("a bomb packed into another")
def nested_bomb(site: Site) -> None:
    sound(site, 2)
    inner = gzip.compress(bytes(100 << 20), 9, mtime=0)
    reply = Answer(body=gzip.compress(inner, mtime=0), headers=(("Content-Encoding", "gzip, gzip"),), gzip=False)
    site.answer("/bomb", reply, Reason.TRUNCATED)


@host("20,000 links on one page, all of them disallowed but ten")
def many_links(site: Site) -> int:
    links = "".join(f'<li><a href="/n/{number}">{number}</a>' for number in range(19_990))
    site.answer(
        "/links", Answer(body=f"<!doctype html><title>Links</title><p>{text('many')}<ul>{links}".encode()), Reason.OK
    )
    sound(site, 10)
    site.answer("/robots.txt", Answer(body=b"User-agent: *\nDisallow: /n/\n", media_type="text/plain"), None, None)
    return 60


@host("a title of a megabyte, 5,000 tags within each other, markup that never closes")
def monsters(site: Site) -> None:
    sound(site, 2)
    site.answer(
        "/title",
        Answer(body=b"<!doctype html><title>" + b"t" * (1 << 20) + f"</title><p>{text('title')}".encode(), gzip=False),
        Reason.OK,
    )
    site.answer(
        "/deep",
        Answer(body=b"<!doctype html><title>Deep</title>" + b"<div>" * 5000 + f"<p>{text('deep')}".encode()),
        Reason.OK,
    )
    content.broken_html(site)


# --- pages and aliases ---


@host("twenty-nine ways to link, and two that are none")
def kinds(site: Site) -> None:
    _become(site, identity.kinds_site(site.host))


@host("sixteen hrefs of ten pages")
def spellings(site: Site) -> None:
    _become(site, identity.identity_site(site.host))
    _kept_once(site)


@host("a PDF, a zip of 64 MB, HTML under other types")
def types(site: Site) -> None:
    sound(site, 2)
    content.pdf(site)
    site.expect("/almanac.pdf", Reason.UNREADABLE)  # it has no page
    content.big_binary(site)
    content.wrong_media(site, "/unsaid", "")
    content.wrong_media(site, "/plain", "text/plain")


@host("unknown paths get 200 and an apology")
def soft_404(site: Site) -> None:
    sound(site)
    for number in range(5):
        site.link("/", f"/lost{number}.html", f"Lost {number}")
    site.routes.prefixes["/"] = lambda asked: Answer(
        body=f"<!doctype html><title>Oops</title><p>We could not find {asked.path}.".encode()
    )
    site.routes.exact["/robots.txt"] = lambda asked: Answer(404, b"")


@host("one text under several addresses, one Czech text with and without diacritics")
def twins(site: Site) -> None:
    sound(site, 2)
    content.same_bytes(site, "/index.html", "/Index.html", "/index.php")
    _kept_once(site)
    content.same_text(site)


@host("an orphan in a sitemap, packed sitemaps")
def mapped(site: Site) -> None:
    sound(site, 4)
    content.sitemaps(site)


# --- robots.txt ---

_BLOCK = "User-agent: *\nDisallow: /private/\n"
_ALL, _OPEN, _NONE = {"/", "/a.html", "/private/b.html"}, {"/", "/a.html"}, set()
ROBOTS: dict[str, tuple[Reply, set[str]]] = {  # the answer, and the paths that may be fetched: RFC 9309
    "404": (Answer(404, _BLOCK.encode(), "text/plain"), _ALL),
    "500": (Answer(500, b"", "text/plain"), _NONE),
    "503": (Answer(503, b"", "text/plain"), _NONE),
    "503-a-day": (Answer(503, b"", "text/plain", (("Retry-After", str(DAY_S)),)), _NONE),
    "html": (Answer(200, b"<!doctype html><title>Log in</title><p>Disallow: /"), _ALL),
    "all": (Answer(200, b"User-agent: *\nDisallow: /\n", "text/plain"), _NONE),
    "none": (Answer(200, b"User-agent: *\nDisallow:\n", "text/plain"), _ALL),
    "empty": (Answer(200, b"", "text/plain"), _ALL),
    "crlf": (Answer(200, _BLOCK.replace("\n", "\r\n").encode(), "text/plain"), _OPEN),
    "cr": (Answer(200, _BLOCK.replace("\n", "\r").encode(), "text/plain"), _OPEN),
    "mark": (Answer(200, b"\xef\xbb\xbf" + _BLOCK.encode(), "text/plain"), _OPEN),
    "wild": (Answer(200, b"User-agent: *\nDisallow: /*/b.html$\n", "text/plain"), _OPEN),
    "longest": (Answer(200, b"User-agent: *\nDisallow: /private/\nAllow: /private/b\n", "text/plain"), _ALL),
    "others": (Answer(200, b"User-agent: otherbot\nDisallow: /\n\n" + _BLOCK.encode(), "text/plain"), _OPEN),
    "merged": (Answer(200, _BLOCK.encode() + b"\nUser-agent: *\nDisallow: /a.html\n", "text/plain"), {"/"}),
    "escaped": (Answer(200, b"User-agent: *\nDisallow: /pri%76ate/\n", "text/plain"), _OPEN),
    "delay": (Answer(200, b"User-agent: *\nCrawl-delay: 2\nDisallow: /private/\n", "text/plain"), _OPEN),
    "moved": (Answer(301, b"", "", (("Location", "/rules.txt"),)), _OPEN),
}


def _robots(site: Site, name: str) -> int:
    reply, allowed = ROBOTS[name]
    for path in ("/a.html", "/private/b.html"):
        site.add(Page(path, f"{name} {path}", (text((name, path)),)), "/" if allowed else None)
    site.answer("/robots.txt", reply, None, None)
    site.answer("/rules.txt", Answer(200, _BLOCK.encode(), "text/plain"), None, None)
    refused = Reason.ROBOTS_UNREACHABLE if isinstance(reply, Answer) and reply.status >= 500 else Reason.ROBOTS
    for path in _ALL - allowed if allowed else {"/"}:
        site.expect(path, refused)
    return 14


for _case in ROBOTS:

    def _rules(site: Site, name: str = _case) -> int:
        return _robots(site, name)

    _rules.__name__ = f"robots_{_case}"
    host(f"robots.txt: {_case}")(_rules)


def _kept_once(site: Site) -> None:
    """Which alias becomes the page depends on the order of requests."""
    site.facts.either.update(url for group in site.facts.duplicates for url in group)


def _become(site: Site, other: Site) -> None:
    """Copies the contents of the other site."""
    site.pages, site.routes, site.facts = other.pages, other.routes, other.facts


def fault_hosts() -> list[FaultHost]:
    """All hosts, newly created."""
    made = []
    for name, (what, plant) in _BUILDERS.items():
        trap = name.removeprefix("endless-").replace("-", "_")
        if name.startswith("endless-"):
            world = town(stories=12, traps=[trap], host=f"{name}.test")
            made.append(FaultHost(name, what, world.site, plant(world.site) or 0, world))
        else:
            site = Site(f"{name}.test")
            site.add(Page("/", f"The host {name}", (text(name),)))
            made.append(FaultHost(name, what, site, plant(site) or 0))
    return made


def fault_web(hosts: Iterable[FaultHost]) -> Web:
    """The hosts, and the control host with the expected results."""
    hosts = list(hosts)
    control = Site(CONTROL)
    control.add(
        Page(
            "/",
            "Hosts",
            ("One fault each.",),
            [PageLink(f.site.url("/"), f.what, target=f.site.url("/")) for f in hosts],
        )
    )
    control.routes.exact["/truth"] = lambda asked: Answer(
        body=json.dumps(truth(hosts)).encode(), media_type="application/json"
    )
    return Web([control, *(f.site for f in hosts)])


def truth(hosts: Iterable[FaultHost]) -> dict[str, dict[str, object]]:
    """By host: its misbehaviour; the expected reason of each URL of a crawl from `/`; pages of an endless
    world; the limit of requests.
    """
    told = {}
    for one in hosts:
        reasons = (
            {}
            if one.world
            else {url: reason.value for url, reason in one.site.truth.expected(one.site.url("/")).items()}
        )
        open_ones = [] if one.world else sorted(one.site.truth.traps)
        reasons = (
            {url: reason for url, reason in reasons.items() if not url.startswith(tuple(open_ones))}
            if open_ones
            else reasons
        )
        pages = sorted(one.world.real) if one.world else []
        told[one.site.host] = {
            "what": one.what,
            "reasons": reasons,
            "pages": pages,
            "most": one.most or 3 * len(reasons) + 10,
        }
    return told


def main() -> None:
    with serve(fault_web(fault_hosts())) as server:
        print(
            f"{len(_BUILDERS)} hosts on 127.0.0.1:{server.port}; crawl with --resolve '*:{server.port}:127.0.0.1' "
            f"--allow-private; key: http://{CONTROL}:{server.port}/truth"
        )
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
