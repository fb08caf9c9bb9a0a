"""robots.txt in forms that crawlers get wrong, and robots rules of pages."""

from __future__ import annotations

from dataclasses import dataclass

from periplus.model.page import Link, LinkKind, Position
from periplus.model.visit import Reason
from periplus.model.web import Url
from testweb.site import Page, Site, Web
from testweb.wire import Answer, Reply, Reset, head, raw

HOST, OTHER = "robots.test", "rules.test"
PATHS = ("/", "/a.html", "/b.html", "/c.html")
ALL = frozenset(PATHS)
KIB = 1024


def text(rules: str, status: int = 200) -> Answer:
    """A robots.txt."""
    return Answer(status, rules.encode(), "text/plain; charset=utf-8")


def disallow(site: Site, rules: str, *blocked: str) -> None:
    """The site's robots.txt; blocked: paths of pages that it disallows."""
    site.answer("/robots.txt", text(rules), None, None)
    for path in blocked:
        site.expect(path, Reason.ROBOTS)


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to /robots.txt, and the PATHS that a crawler from / may fetch."""

    reply: Reply
    fetched: frozenset[str]
    reason: Reason = Reason.ROBOTS  # of the pages that are not fetched
    source: str = "RFC 9309"
    extra: tuple[tuple[str, str, Reply], ...] = ()  # further answers: host, path, reply
    either: frozenset[str] = frozenset()  # paths that the RFC leaves open (`fetched` has our choice)


def _moved(target: str) -> Answer:
    return Answer(301, b"", "text/plain", (("Location", target),))


BLOCKS_B = text("User-agent: *\nDisallow: /b.html\n")
NOT_B = ALL - {"/b.html"}
NONE: frozenset[str] = frozenset()
UNREACHABLE = Reason.ROBOTS_UNREACHABLE
_FILLER = "# the pilot's remarks, sixty-four characters to the line, no more\n"[:63] + "\n"
_HOPS = tuple((HOST, f"/hop{n}.txt", _moved(f"/hop{n + 1}.txt")) for n in range(1, 5))

CASES: dict[str, Case] = {
    "503": Case(text("", 503), NONE, UNREACHABLE, "RFC 9309, 2.3.1.4"),
    "reset": Case(raw(Reset()), NONE, UNREACHABLE, "RFC 9309, 2.3.1.4"),
    "empty-reply": Case(raw(), NONE, UNREACHABLE, "RFC 9309, 2.3.1.4"),
    "404": Case(text("User-agent: *\nDisallow: /\n", 404), ALL, source="RFC 9309, 2.3.1.3: an error page is no rule"),
    "403": Case(text("", 403), ALL, source="RFC 9309, 2.3.1.3 (may)", either=ALL),
    "401": Case(text("", 401), ALL, source="RFC 9309, 2.3.1.3 (may)", either=ALL),
    "429": Case(text("", 429), NONE, UNREACHABLE, "ours, as Google: 429 as 5xx", either=ALL),
    "cut": Case(
        raw(head(200, ("Content-Length", "500")), b"User-agent: *\nDisa", status=200),
        NONE,
        UNREACHABLE,
        "RFC 9309, 2.3.1.4: a network error",
    ),
    "redirect": Case(
        _moved("/robots2.txt"), NOT_B, source="RFC 9309, 2.3.1.2", extra=((HOST, "/robots2.txt", BLOCKS_B),)
    ),
    "redirect-5": Case(
        _moved("/hop1.txt"),
        NOT_B,
        source="RFC 9309, 2.3.1.2: at least five",
        extra=(*_HOPS, (HOST, "/hop5.txt", BLOCKS_B)),
    ),
    "cross-host": Case(
        _moved(f"http://{OTHER}:@PORT@/rules.txt"),
        NOT_B,
        source="RFC 9309, 2.3.1.2: for the first host",
        extra=((OTHER, "/rules.txt", BLOCKS_B),),
    ),
    "redirect-loop": Case(_moved("/robots.txt"), ALL, source="RFC 9309, 2.3.1.2 (may)", either=ALL),
    "redirect-404": Case(_moved("/robots2.txt"), ALL, source="RFC 9309, 2.3.1.3 behind a redirect"),
    "bom": Case(
        Answer(200, b"\xef\xbb\xbfUser-agent: *\nDisallow: /b.html\n", "text/plain"),
        NOT_B,
        source="RFC 9309, 2.3: UTF-8; ours: a BOM is skipped",
    ),
    "wildcard": Case(
        text("User-agent: *\nDisallow: /*.html$\nAllow: /a.html\n"),
        frozenset({"/"}),
        source="RFC 9309, 2.2.2 and 2.2.3",
    ),
    "allow-longer": Case(text("User-agent: *\nDisallow: /b\nAllow: /b.html\n"), ALL, source="RFC 9309, 2.2.2"),
    "allow-equal": Case(
        text("User-agent: *\nDisallow: /b.html\nAllow: /b.html\n"), ALL, source="RFC 9309, 2.2.2: of equals, allow"
    ),
    "own-group": Case(
        text("User-agent: *\nDisallow: /\n\nUser-agent: Periplus\nDisallow: /c.html\n"),
        ALL - {"/c.html"},
        source="RFC 9309, 2.2.1",
    ),
    "two-groups": Case(
        text(
            "User-agent: periplus\nDisallow: /a.html\n\nUser-agent: x\nDisallow: /\n\n"
            "User-agent: PERIPLUS\nDisallow: /b.html\n"
        ),
        frozenset({"/", "/c.html"}),
        source="RFC 9309, 2.2.1: groups of one name are one",
    ),
    "all": Case(text("User-agent: *\nDisallow: /\n"), NONE),
    "empty": Case(text(""), ALL),
    "empty-disallow": Case(text("User-agent: *\nDisallow:\n"), ALL),
    "old-mac": Case(text("User-agent: *\rDisallow: /b.html\r"), NOT_B, source="RFC 9309, 2.2: EOL is CR, LF or both"),
    "html": Case(
        Answer(200, b"<!doctype html><title>Welcome</title><p>Disallow: nothing", "text/html"),
        ALL,
        source="an error page with status 200",
    ),
    "binary": Case(Answer(200, bytes(range(256)) * 20, "application/octet-stream"), ALL, source="any bytes"),
    "600-kb": Case(
        text("User-agent: *\nDisallow: /b.html\n" + _FILLER * 9_375 + "Disallow: /c.html\n"),
        NOT_B,
        source="RFC 9309, 2.5: at least 500 KiB",
        either=frozenset({"/c.html"}),
    ),
    "near-500-kib": Case(
        text("User-agent: *\n" + _FILLER * ((500 * KIB - 400) // 64) + "Disallow: /b.html\n"),
        NOT_B,
        source="RFC 9309, 2.5: within 500 KiB",
    ),
}


def robots_web(case: str) -> Web:
    """Four pages, `/` linking to the three others, with the named answer to /robots.txt."""
    asked = CASES[case]
    site = Site(HOST)
    site.add(Page("/", "Harbour rules", ("Four pages and one set of rules.",)))
    for path in PATHS[1:]:
        site.add(Page(path, f"Quay {path[1]}", (f"This is quay {path[1]}, where ships of that letter lie.",)), "/")
    site.answer("/robots.txt", asked.reply, None, None)
    for path in ALL - asked.fetched:
        site.expect(path, asked.reason)
    site.facts.either.update(site.url(path) for path in asked.either)
    web = Web([site])
    for host, path, reply in asked.extra:
        web.site(host).answer(path, reply, None, None)
    return web


def crawl_delay_web(seconds: float = 1.0, pages: int = 5) -> Web:
    """A site whose robots.txt asks for that delay. The gaps are in the server's log."""
    site = Site(HOST)
    site.add(Page("/", "A slow harbour", ("Please wait for the tide.",)))
    for number in range(1, pages):
        site.add(Page(f"/{number}.html", f"Berth {number}", (f"Berth {number} lies along the wall.",)), "/")
    disallow(site, f"User-agent: *\nCrawl-delay: {seconds:g}\n")
    return Web([site])


def _with_child(site: Site, page: Page) -> None:
    """A page, and one that only it links to: /NAME-child.html."""
    site.add(page, "/")
    child = page.path.replace(".html", "-child.html")
    site.add(Page(child, f"Behind {page.title}", (f"Only {page.path} links here.",)), page.path)


# nofollow?
META_RULES = {
    "nofollow": True,
    "noindex": False,
    "none": True,
    "noindex, nofollow": True,
    "index,follow": False,
    "NOFOLLOW": True,
}
HEADER_RULES = {
    "nofollow": True,
    "noindex": False,
    "none": True,
    "otherbot: nofollow": False,
    "periplus: nofollow": True,
}


def page_rules_site(host: str = "rules-of-pages.test") -> Site:
    """meta robots, X-Robots-Tag and rel=nofollow, each with a page that only it leads to; base,
    frames and meta refresh besides.
    """
    site = Site(host)
    site.add(Page("/", "Rules within pages", ("Each page below says what may be done with it.",)))
    for content, nofollow in META_RULES.items():
        name = "meta-" + content.replace(", ", "-").replace(",", "-")
        head = f'<meta name="robots" content="{content}">'
        _with_child(site, Page(f"/{name}.html", name, ("See the head of this page.",), head=head, nofollow=nofollow))
    for content, nofollow in HEADER_RULES.items():
        name = "header-" + content.replace(": ", "-")
        _with_child(
            site,
            Page(
                f"/{name}.html",
                name,
                ("See this page's header.",),
                headers=(("X-Robots-Tag", content),),
                nofollow=nofollow,
            ),
        )
    _with_child(
        site,
        Page(
            "/meta-own.html",
            "For us only",
            ("Named by our name.",),
            head='<meta name="periplus" content="nofollow">',
            nofollow=True,
        ),
    )
    for path, page in site.pages.items():
        if "child" not in path and ("noindex" in path or "none" in path):
            site.expect(path, Reason.NOINDEX)
        if page.nofollow:
            site.expect(path.replace(".html", "-child.html"), Reason.NOFOLLOW)
    site.add(Page("/rel-child.html", "Behind rel=nofollow", ("Only links with rel=nofollow lead here.",)))
    for rel in ("nofollow", "ugc", "external sponsored", "NoFollow"):
        site.link("/", "/rel-child.html", f"rel {rel}", rel=rel)
    site.expect("/rel-child.html", Reason.NOFOLLOW)
    _frames_and_base(site)
    return site


def _link(url: str, kind: LinkKind, position: Position = Position.BODY, anchor: str = "") -> Link:
    return Link(Url(url), kind, position, anchor)


def _frames_and_base(site: Site) -> None:
    """A base element, a frameset and a meta refresh, each with a page that is reachable only through it."""
    base = (
        '<!doctype html><title>Based</title><base href="/far/off/"><h1>Based</h1><p><a '
        'href="isle.html">The isle</a></p>'
    )
    site.add(
        Page(
            "/base.html",
            "Based",
            html=base,
            language="",
            known=(_link(site.url("/far/off/isle.html"), LinkKind.ANCHOR, Position.BODY, "The isle"),),
        ),
        "/",
    )
    site.add(Page("/far/off/isle.html", "The isle", ("Found by the base of another page.",)))
    frames = (
        '<html><head><title>Framed</title></head><frameset cols="20%,80%"><frame src="/menu.html"><frame '
        'src="/view.html"></frameset></html>'
    )
    known = (_link(site.url("/menu.html"), LinkKind.FRAME), _link(site.url("/view.html"), LinkKind.FRAME))
    site.add(Page("/frames.html", "Framed", html=frames, language="", known=known), "/")
    site.add(Page("/menu.html", "The menu", ("A menu in a frame.",)))
    site.add(Page("/view.html", "The view", ("A view in a frame.",)))
    refresh = Page(
        "/refresh.html",
        "Going on",
        ("In a moment another page appears.",),
        head='<meta http-equiv="refresh" content="5; url=/onward.html">',
    )
    refresh.known = (_link(site.url("/onward.html"), LinkKind.REFRESH, Position.HEAD),)
    site.add(refresh, "/")
    site.add(Page("/onward.html", "Onward", ("Reached by a refresh.",)))
