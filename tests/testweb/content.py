"""Contents of bodies: charsets, false declarations, duplicates, other media types, sitemaps, canonical and hreflang."""

from __future__ import annotations

import gzip
import unicodedata
from collections.abc import Iterable

from periplus.model.page import Link, LinkKind, Position
from periplus.model.visit import Reason
from periplus.model.web import Url
from testweb.graphs import GraphRecipe, graph_site
from testweb.site import Page, PageLink, Site
from testweb.wire import PORT, Answer, Pause, Raw, head, raw

CZECH = (
    "Starý maják stojí na skále nad přístavem a jeho světlo je vidět z dálky.",
    "Každý večer strážce vystoupá po točitých schodech a rozžehne lampu, aby lodě našly cestu.",
    "V zimě, když vítr žene vlny přes molo, zůstávají rybáři doma a spravují sítě.",
)
RUSSIAN = (
    "Старый маяк стоит на скале над гаванью, и его свет виден издалека.",
    "Каждый вечер смотритель поднимается по винтовой лестнице и зажигает лампу.",
)
HUNGARIAN = (
    "A régi világítótorony a kikötő fölötti sziklán áll, és fénye messziről látszik.",
    "Minden este az őr fölmegy a csigalépcsőn, és meggyújtja a lámpát.",
)
TONGUES = {"cs": CZECH, "ru": RUSSIAN, "hu": HUNGARIAN}
CHARSETS = {
    "cs": ("utf-8", "windows-1250", "iso-8859-2"),
    "ru": ("utf-8", "windows-1251", "koi8-r"),
    "hu": ("utf-8", "windows-1250", "iso-8859-2"),
}
DECLARED = ("header", "meta", "none")


def plain(text: str) -> str:
    """The text without diacritics."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def charsets(site: Site) -> None:
    """One text per language in three charsets, each declared in the header, in meta, and not at all:
    /cs-windows-1250-none.html and so on.
    """
    for language, names in CHARSETS.items():
        group = []
        for charset in names:
            for where in DECLARED:
                path = f"/{language}-{charset}-{where}.html"
                site.add(
                    Page(
                        path,
                        TONGUES[language][0],
                        TONGUES[language] * 3,
                        language=language,
                        charset=charset,
                        charset_in=where,
                    ),
                    "/",
                )
                group.append(site.url(path))
        site.facts.duplicates.append(tuple(group))


def charset_lie(site: Site, path: str = "/liar.html") -> None:
    """The header says utf-8; the bytes, and meta, are windows-1250."""
    lie = (("Content-Type", "text/html; charset=utf-8"),)
    page = site.add(
        Page(path, "Maják, který lže", CZECH, language="cs", charset="windows-1250", charset_in="meta"), "/"
    )
    site.routes.exact[path] = lambda asked: Answer(body=site.body(page, 0), media_type="", headers=lie)


def same_bytes(site: Site, *paths: str) -> None:
    """The same bytes under several paths."""
    body = (
        b"<!doctype html><title>Twins</title><h1>Twins</h1><p>This page has a twin, and neither "
        b"knows which came first.</p>"
    )
    site.facts.duplicates.append(tuple(site.answer(path, Answer(body=body), Reason.OK) for path in paths))


def same_text(site: Site, stem: str = "/cz") -> None:
    """A Czech text with diacritics (the representative) and without."""
    kept = site.add(Page(f"{stem}-full.html", "Maják", CZECH, language="cs"), "/")
    bare = Page(f"{stem}-ascii.html", plain(kept.title), tuple(map(plain, CZECH)), language="cs", charset="us-ascii")
    site.add(bare, "/")
    site.facts.duplicates.append((site.url(kept.path), site.url(bare.path)))


def wrong_media(
    site: Site, path: str, media_type: str, body: bytes = b"<!doctype html><title>Html</title><p>Really HTML.</p>"
) -> None:
    """A body that does not match its Content-Type; the crawler may treat it either way.

    media_type empty: no Content-Type is sent.
    """
    site.facts.either.add(site.answer(path, Answer(body=body, media_type=media_type, gzip=False)))


def big_binary(site: Site, path: str = "/charts.zip", megabytes: int = 64) -> str:
    """A large zip file: a crawler can stop after its header. The log has the number of bytes sent."""
    length = ("Content-Length", str(megabytes << 20))

    def steps():
        yield head(200, length, media_type="application/zip") + b"PK\x03\x04"
        yield bytes((1 << 16) - 4)
        for _ in range(megabytes * 16 - 1):
            yield Pause(0.001)
            yield bytes(1 << 16)

    return site.answer(path, Raw(steps, 200), Reason.OTHER_MEDIA)


def pdf(site: Site, path: str = "/almanac.pdf") -> str:
    """A small PDF document."""
    return site.answer(
        path,
        Answer(
            body=b"%PDF-1.4\n1 0 obj <</Type /Catalog>> endobj\ntrailer <</Root 1 0 R>>\n%%EOF\n",
            media_type="application/pdf",
        ),
        Reason.OTHER_MEDIA,
    )


def broken_html(site: Site, path: str = "/wreck.html", size: int = 2000) -> str:
    """Unclosed and deeply nested markup, stray bytes, an attribute without end."""
    body = (
        b"<html><title>Wreck"
        + b"<div><b><i>" * size
        + b'<p>\x00\xff\xfe<a href=\'/ <a href="/?">'
        + b"<table><tr>" * 50
    )
    return site.answer(path, raw(head(200), body, status=200), Reason.OK)


def canonical(site: Site, path: str, to: str) -> None:
    """A page with a canonical link to another page."""
    known = (Link(Url(site.url(to)), LinkKind.CANONICAL, Position.HEAD),)
    site.add(
        Page(
            path,
            "Seen from elsewhere",
            ("The same harbour from another hill.",),
            head=f'<link rel="canonical" href="{to}">',
            known=known,
        ),
        "/",
    )
    site.facts.canonicals[site.url(path)] = site.url(to)


def hreflang(site: Site, paths: dict[str, str]) -> None:
    """Pages of several languages with hreflang links to each other; paths: language -> path.

    The language `x-broken` links to a page without a return link.
    """
    alternates = "".join(
        f'<link rel="alternate" hreflang="{language}" href="{path}">'
        for language, path in paths.items()
        if language != "x-broken"
    )
    known = tuple(
        Link(Url(site.url(path)), LinkKind.ALTERNATE, Position.HEAD)
        for language, path in paths.items()
        if language != "x-broken"
    )
    for language, path in paths.items():
        text = TONGUES.get(language, ("The old light stands on the rock above the harbour.",))
        site.add(Page(path, f"{language}: {text[0]}", text, language=language, head=alternates, known=known), "/")


def head_links(site: Site) -> None:
    """<link> elements of a manual, which visitors cannot click: index, next page and feed.

    The index and the feed list all pages. Only the head of the home page links to `/unclicked.html`, and only that
    page to `/beyond.html`.
    """
    paths = list(site.pages)
    site.add(Page("/beyond.html", "Beyond", ("A page behind one that no visitor can click.",)))
    onward = [PageLink("/beyond.html", "beyond"), PageLink("/", "home")]
    site.add(Page("/unclicked.html", "Unclicked", ("A page that no visitor can click.",), onward))
    terms = [PageLink(path, f"term {number}") for number, path in enumerate(paths)]
    site.add(Page("/terms.html", "Terms", ("All terms of this book.",), terms), paths[-1])
    items = "".join(f"<item><title>{path}</title><link>{path}</link></item>" for path in paths)
    feed = f"<rss><channel><title>News</title><link>/</link>{items}</channel></rss>"
    site.answer("/feed.xml", Answer(body=feed.encode(), media_type="application/rss+xml"), Reason.OK, "/")
    for path, following in zip(paths, ["/unclicked.html", *paths], strict=False):
        named = (
            ("index", "/terms.html", LinkKind.RELATED),
            ("next", following, LinkKind.RELATED),
            ("alternate", "/feed.xml", LinkKind.ALTERNATE),
        )
        page = site.pages[path]
        page.head += "".join(f'<link rel="{rel}" href="{target}">' for rel, target, _ in named)
        page.known += tuple(Link(Url(site.url(target)), kind, Position.HEAD) for _, target, kind in named)


def manual_site(seed: int = 1, pages: int = 60, host: str = "manual.test") -> Site:
    """A deep site with `head_links`."""
    site = graph_site(GraphRecipe(seed, pages, 6, "deep", 1500, host))
    head_links(site)
    return site


def sitemaps(site: Site, *, orphans: Iterable[str] = ("/orphan.html",), robots: bool = True) -> None:
    """A sitemap index with one plain and one gzipped sitemap of every page so far; orphans:
    pages in it without inlinks.
    """
    paths = list(site.pages)
    for path in orphans:
        site.add(Page(path, "An orphan", ("No page links here; only the sitemap knows it.",), [PageLink("/", "Home")]))
        site.facts.orphans.add(site.url(path))
    half = len(paths) // 2
    _xml(site, "/sitemap-1.xml", _urlset(site, paths[:half]))
    _xml(site, "/sitemap-2.xml.gz", _urlset(site, [*paths[half:], *orphans]))
    entries = "".join(
        f"<sitemap><loc>{site.url(path)}</loc></sitemap>" for path in ("/sitemap-1.xml", "/sitemap-2.xml.gz")
    )
    _xml(
        site,
        "/sitemap.xml",
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>',
    )
    if robots:
        rules = f"User-agent: *\nDisallow:\n\nSitemap: {site.url('/sitemap.xml')}\n"
        site.answer("/robots.txt", Answer(body=rules.encode(), media_type="text/plain"), None, None)


def _urlset(site: Site, paths: list[str]) -> str:
    entries = "".join(f"<url><loc>{site.url(path)}</loc><lastmod>2026-05-04</lastmod></url>" for path in paths)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset '
        f'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    )


def _xml(site: Site, path: str, text: str) -> None:
    """A sitemap; names in .gz are compressed on request, because the port is unknown before."""
    if not path.endswith(".gz"):
        site.answer(path, Answer(body=text.encode(), media_type="application/xml"), None, None)
        return

    def reply(asked):
        port = asked.headers.get("host", "").rpartition(":")[2]
        return Answer(
            body=gzip.compress(text.replace(PORT, port).encode(), mtime=0), media_type="application/gzip", gzip=False
        )

    site.answer(path, reply, None, None)


def mixed_site(host: str = "mixed.test") -> Site:
    """A site with everything of this module."""
    site = Site(host)
    site.add(Page("/", "A mixed cargo", ("Texts in many charsets, twins, and things that are no pages.",)))
    charsets(site)
    charset_lie(site)
    same_bytes(site, "/twin-1.html", "/twin-2.html")
    same_text(site)
    wrong_media(site, "/html-as-text", "text/plain")
    wrong_media(site, "/html-as-nothing", "")
    wrong_media(site, "/zip-as-html", "text/html", b"PK\x03\x04" + bytes(range(256)) * 4)
    big_binary(site)
    pdf(site)
    broken_html(site)
    canonical(site, "/elsewhere.html", "/twin-1.html")
    hreflang(
        site, {"en": "/lang/en.html", "cs": "/lang/cs.html", "hu": "/lang/hu.html", "x-broken": "/lang/other.html"}
    )
    sitemaps(site)
    return site
