"""Equivalent URLs, and kinds of links: two pages with known hrefs."""

from __future__ import annotations

from dataclasses import dataclass

from periplus.model.page import Link, LinkKind, Position
from periplus.model.visit import Reason
from periplus.model.web import Url
from testweb.site import Page, PageLink, Site
from testweb.wire import Answer

SAME, CONTENT, APART = "one URL by the URL Living Standard", "two URLs, one content", "two pages"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two of the sixteen hrefs, and their relation."""

    one: str
    other: str
    relation: str


PAIRS = (
    Pair("/Foo.html", "/foo.html", APART),
    Pair("/u", "/u/", APART),
    Pair("/f.html#a", "/f.html#b", SAME),
    Pair("/q?b=2&a=1", "/q?a=1&b=2", CONTENT),  # this server ignores their order; others may not
    Pair("/t.html?utm_source=x", "/t.html", CONTENT),
    Pair("/%7Euser.html", "/~user.html", SAME),  # equal by RFC 3986, 6.2.2.2; the URL Living Standard keeps them apart
    Pair("/d%2Ehtml", "/d.html", SAME),  # the same
    Pair("/z/../dots.html", "/dots.html", SAME),
)
SPELLINGS = 14  # among the sixteen, without fragments and dots
FETCHES_MOST = 12  # distinct URLs among them
CONTENTS = 10  # distinct pages behind them: fewer means that one was lost


def identity_site(host: str = "identity.test") -> Site:
    """`/` links to the sixteen hrefs of PAIRS."""
    site = Site(host)
    home = site.add(Page("/", "Sixteen ways to ten pages", ("Mind the details.",)))
    for pair in PAIRS:
        for href in (pair.one, pair.other):
            target = site.url(href.partition("#")[0].replace("/z/../", "/"))
            home.links.append(PageLink(href, f"by {href}", target=target))
        one, other = ((href.partition("#")[0].replace("/z/../", "/")) for href in (pair.one, pair.other))
        site.add(Page(one, f"At {one}", (f"The page that lives at {one} and nowhere else.",)))
        if pair.relation == APART:
            site.add(Page(other, f"At {other}", (f"A different page, at {other}.",)))
        elif other != one:
            site.routes.exact[other] = site.routes.exact[one]
            site.facts.duplicates.extend([(site.url(one), site.url(other))] if pair.relation == CONTENT else [])
    return site


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to link."""

    name: str  # of its target: /kinds/NAME
    markup: str  # with {} for the URL
    kind: LinkKind
    head: bool = False
    anchor: str = ""  # its text, or its alt


KINDS = (
    Kind("style.css", '<link rel="stylesheet" href="{}">', LinkKind.STYLE, True),
    Kind("icon.png", '<link rel="shortcut icon" href="{}">', LinkKind.ICON, True),
    Kind("canonical", '<link rel="canonical" href="{}">', LinkKind.CANONICAL, True),
    Kind("alternate", '<link rel="alternate" hreflang="cs" href="{}">', LinkKind.ALTERNATE, True),
    Kind("next", '<link rel="next" href="{}">', LinkKind.RELATED, True),
    Kind("refresh", '<meta http-equiv="refresh" content="30;url={}">', LinkKind.REFRESH, True),
    Kind("script.js", '<script src="{}"></script>', LinkKind.SCRIPT, True),
    Kind("import.css", '<style>@import url("{}");</style>', LinkKind.STYLE, True),
    Kind("css-background.png", "<style>main {{ background: url({}) }}</style>", LinkKind.IMAGE, True),
    Kind("anchor", '<a href="{}">An anchor</a>', LinkKind.ANCHOR, anchor="An anchor"),
    Kind("area", '<map name="m"><area href="{}" alt="An area"></map>', LinkKind.AREA, anchor="An area"),
    Kind("iframe", '<iframe src="{}"></iframe>', LinkKind.IFRAME),
    Kind("img.png", '<img src="{}" alt="An image">', LinkKind.IMAGE, anchor="An image"),
    Kind("img-srcset.png", '<img alt="" srcset="{} 2x">', LinkKind.IMAGE),
    Kind("source-srcset.webp", '<picture><source srcset="{} 800w"></picture>', LinkKind.IMAGE),
    Kind("lazy.png", '<img alt="" data-src="{}">', LinkKind.IMAGE),
    Kind("video.mp4", '<video src="{}"></video>', LinkKind.MEDIA),
    Kind("poster.jpg", '<video poster="{}"></video>', LinkKind.MEDIA),
    Kind("audio.ogg", '<audio src="{}"></audio>', LinkKind.MEDIA),
    Kind("track.vtt", '<video><track src="{}"></video>', LinkKind.MEDIA),
    Kind("embed.svg", '<embed src="{}">', LinkKind.OBJECT),
    Kind("object.svg", '<object data="{}"></object>', LinkKind.OBJECT),
    Kind("form", '<form action="{}"><button>Send</button></form>', LinkKind.FORM),
    Kind("cite", '<blockquote cite="{}"><p>So they say.</p></blockquote>', LinkKind.CITE),
    Kind("q-cite", '<p><q cite="{}">Aye</q></p>', LinkKind.CITE),
    Kind(
        "svg-link",
        '<svg viewBox="0 0 9 9"><a xlink:href="{}"><text y="9">A mark</text></a></svg>',
        LinkKind.ANCHOR,
        anchor="A mark",
    ),
    Kind("svg-image.png", '<svg viewBox="0 0 9 9"><image xlink:href="{}"/></svg>', LinkKind.IMAGE),
    Kind("inline-style.png", "<p style=\"background:url('{}')\">A painted plank.</p>", LinkKind.IMAGE),
    Kind("input.png", '<form><input type="image" src="{}" alt="Go"></form>', LinkKind.IMAGE, anchor="Go"),
)
FALSE_LINKS = ("/kinds/commented", "/kinds/in-a-string")  # in a comment, in the text of a script


def kinds_html() -> str:
    """The page of 29 link kinds. Source of the list: measurements of seven crawlers."""
    marks = [(kind, kind.markup.format(f"/kinds/{kind.name}")) for kind in KINDS]
    head = "\n".join(markup for kind, markup in marks if kind.head)
    body = "\n".join(markup for kind, markup in marks if not kind.head)
    false = (
        f'<!-- <a href="{FALSE_LINKS[0]}">no</a> -->\n<script>var path = \'<a '
        f'href="{FALSE_LINKS[1]}">no<\\/a>\';</script>'
    )
    return (
        f"<!doctype html>\n<html><head><title>Every kind of link</title>\n{head}\n</head><body><main>\n{body}\n"
        f"{false}\n</main></body></html>\n"
    )


def kinds_site(host: str = "kinds.test") -> Site:
    """`/` is the page of 29 link kinds; every target exists."""
    site = Site(host)
    known = tuple(
        Link(
            Url(site.url(f"/kinds/{kind.name}")), kind.kind, Position.HEAD if kind.head else Position.MAIN, kind.anchor
        )
        for kind in KINDS
    )
    site.add(Page("/", "Every kind of link", html=kinds_html(), language="", known=known))
    for kind in KINDS:
        path = f"/kinds/{kind.name}"
        if "." in kind.name:
            site.answer(
                path, Answer(body=b"\x00\x01 not read", media_type="application/octet-stream"), Reason.RESOURCE, None
            )
        else:
            site.add(Page(path, f"Behind {kind.name}", (f"Found by {kind.name}.",)))
    return site
