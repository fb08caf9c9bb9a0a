"""All planted faults are found, and nothing else: precision and recall 1.0 over all issues that need no waiting."""

from __future__ import annotations

import random
from collections import defaultdict
from urllib.parse import urlsplit

import pytest
from voyage import settings_for

import periplus
from periplus.analyse.audit import issue_kinds
from periplus.api.checking import CheckOrder, check
from periplus.api.crawling import CrawlOrder
from periplus.api.positions import issues_of
from periplus.urls.canonical import canonical
from testweb import Page, Site, serve, tls
from testweb.content import mixed_site
from testweb.wire import PORT, TLS_PORT, Answer

UNPLANTED = {  # the first would take 2 s; test_check.py plants the others, test_unread.py the last
    "slow-page", "broken-start", "suspect-link", "refused-link", "server-error", "partly-read", "endless-series",
    "bot-wall",
}  # fmt: skip

NOTED = {code for code, kind in issue_kinds().items() if kind.source}  # of markup and headers: test_page_notes.py


def audited(folder, server, start):
    """(code, path, path of the related URL) of all issues of a check."""
    settings = settings_for(server, recheck_wait_s=0.1, insecure=True)
    check(CheckOrder(CrawlOrder(folder, (canonical(start),), settings)), lambda progress: False)
    issues = issues_of(folder, settings, near=True)
    return {
        (issue.code, path_of(issue.url), path_of(issue.related) if pairs(issue.code) else "")
        for issue in issues
        if issue.code not in NOTED
    }


def path_of(url):
    return urlsplit(url).path


def pairs(code):
    """In groups the related URL may be any other member."""
    return code not in ("duplicate", "title-duplicate", "description-duplicate", "malformed-link")


WORDS = (
    "gull",
    "rope",
    "keel",
    "sand",
    "lamp",
    "tide",
    "mast",
    "reef",
    "buoy",
    "sail",
    "fog",
    "bell",
    "cove",
    "oar",
    "net",
    "pier",
)


def prose(name, count=120):
    """Words in a different order for each name."""
    seed, words = sum(ord(sign) * 31**place for place, sign in enumerate(name)), []
    for _ in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        words.append(WORDS[seed >> 60] + WORDS[seed >> 56 & 15])
    return " ".join(words)


class Planted:
    """A correct site over TLS with added faults. wrong: expected issues."""

    def __init__(self):
        self.site, self.home, self.listed, self.wrong = Site("a.test"), [], ["/"], set()

    def page(self, path, *codes, related="", body="", linked=True, listed=True, headers=(), **told):
        """Adds a correct page with the given changes, and the expected codes."""
        values = {
            "title": f"The page {path[:20]}",
            "description": f"About {path[:20]}",
            "h1": "<h1>A page</h1>",
            "lang": ' lang="en"',
            "head": "",
            **told,
        }
        described = f'<meta name="description" content="{values["description"]}">' if values["description"] else ""
        text = f"<p>{told.get('text', prose(path))}</p>"
        html = (
            f"<!doctype html><html{values['lang']}><head><meta "
            f"charset=utf-8><title>{values['title']}</title>{described}{values['head']}</head>"
        )
        self.site.add(Page(path, "", html=f"{html}<body>{values['h1']}{text}{body}</body></html>", headers=headers))
        if linked:
            self.home.append(f'<a href="{path}">to {path[:20]}</a>')
        if listed:
            self.listed.append(path)
        self.wrong |= {(code, path, related if pairs(code) else "") for code in codes}

    def link(self, href, *codes, related=None, attributes=""):
        """A link of the home page."""
        self.home.append(f'<a href="{href}" {attributes}>there</a>')
        self.wrong |= {(code, "/", related if related is not None else href) for code in codes}

    def moved(self, path, target):
        self.site.answer(path, Answer(301, b"moved", headers=(("Location", target),)), linked_from=None)

    def done(self):
        self.page("/", linked=False, listed=False, body="".join(self.home))
        entries = "".join(f"<url><loc>https://a.test:{TLS_PORT}{path}</loc></url>" for path in self.listed)
        self.site.answer(
            "/sitemap.xml", Answer(200, f"<urlset>{entries}</urlset>".encode(), "application/xml"), linked_from=None
        )
        self.site.answer(
            "/robots.txt", Answer(200, b"User-agent: *\nDisallow: /forbidden\n", "text/plain"), linked_from=None
        )
        return self.site


def named(path):
    return {"head": f'<link rel="canonical" href="{path}">'}


def translated(**languages):
    return {
        "head": "".join(f'<link rel="alternate" hreflang="{code}" href="{path}">' for code, path in languages.items())
    }


def titles(plan):
    plan.page("/sound")
    plan.page("/untitled", "title-missing", title="")
    for number in (1, 2):
        plan.page(f"/same-title-{number}", "title-duplicate", title="Two pages of one title")
        plan.page(f"/same-description-{number}", "description-duplicate", description="Two pages of one description")
        plan.page(f"/same-text-{number}", "duplicate", text=prose("same"))
    plan.page("/near-1", text=prose("near", 400))
    plan.page("/near-2", "near-duplicate", related="/near-1", text=prose("near", 400) + " but this")
    plan.page("/title-long", "title-long", title="long " * 13)
    plan.page("/undescribed", "description-missing", description="")
    plan.page("/description-long", "description-long", description="long " * 33)
    plan.page("/no-heading", "h1-missing", h1="")
    plan.page("/two-headings", "h1-several", h1="<h1>One</h1><h1>Two</h1>")
    plan.page("/no-language", "language-missing", lang="")
    plan.page("/liar", "charset-mismatch", headers=(("Content-Type", "text/html; charset=iso-8859-2"),))
    plan.page("/bare-image", "image-without-alt", body="<img src=/lamp.png>")
    plan.site.answer("/lamp.png", Answer(200, b"\x89PNG", "image/png"), linked_from=None)
    # more compressible text would count as a bomb
    plan.page("/heavy", "heavy-page", body=f"<!--{random.Random(1).randbytes(1_600_000).hex()}-->")


def indexing(plan):
    plan.page("/hidden", listed=False, head='<meta name="robots" content="noindex">')
    plan.page("/hidden-listed", "noindex-in-sitemap", head='<meta name="robots" content="noindex">')
    plan.page("/other-address", "canonical-elsewhere", related="/sound", listed=False, **named("/sound"))
    plan.page("/other-listed", "canonical-elsewhere", "canonical-in-sitemap", related="/sound", **named("/sound"))
    plan.page("/to-nothing", "canonical-broken", related="/no-canonical", listed=False, **named("/no-canonical"))
    plan.page("/to-moved", "canonical-redirect", related="/moved", listed=False, **named("/moved"))
    plan.page("/to-hidden", "canonical-noindex", related="/hidden", listed=False, **named("/hidden"))
    plan.page("/to-third", "canonical-chain", related="/other-address", listed=False, **named("/other-address"))
    plan.page("/self-named", **named("/self-named"))
    plan.page("/unlisted", "missing-from-sitemap", listed=False)
    plan.page("/alone", "orphan", linked=False)
    for code, path in (
        ("robots-sitemap-conflict", "/forbidden"),
        ("redirect-in-sitemap", "/moved-listed"),
        ("broken-in-sitemap", "/gone-listed"),
    ):
        plan.listed.append(path)
        plan.wrong.add((code, path, ""))
    plan.moved("/moved", "/sound")
    plan.moved("/moved-listed", "/sound")


def languages(plan):
    plan.page("/pair-en", **translated(en="/pair-en", de="/pair-de"))
    plan.page("/pair-de", **translated(en="/pair-en", de="/pair-de"))
    plan.page("/one-way", "hreflang-no-return", related="/pair-en", **translated(en="/pair-en", fr="/one-way"))
    plan.page("/bad-language", "hreflang-bad-language", related="/bad-language", **translated(english="/bad-language"))
    plan.page(
        "/to-no-page",
        "hreflang-broken",
        related="/no-translation",
        **translated(fr="/no-translation", en="/to-no-page"),
    )
    plan.page("/not-among-them", "hreflang-no-self", **translated(de="/among-them"))
    plan.page("/among-them", **translated(en="/not-among-them", de="/among-them"))
    twice = translated(en="/twice", EN="/twice-too")
    plan.page("/twice", "hreflang-twice", related="/twice-too", **twice)
    plan.page("/twice-too", **translated(en="/twice", de="/twice-too"))


def links(plan):
    plan.link("/gone", "broken-link")
    plan.page("/no-image", "broken-resource", related="/gone.png", body='<img src="/gone.png" alt="">')
    plan.link("/sound#nowhere", "broken-fragment", related="/sound")
    plan.link("/self-named#:~:text=words%20that%20nobody%20wrote", "missing-text", related="/self-named")
    plan.link("mailto:bad@@there", "bad-mailto", related="")
    plan.link("http://[::1/", "malformed-link", related="")
    plan.link("/sound", "nofollow-inside", related="", attributes="rel=nofollow")
    plan.link("/looks-missing", "soft-404")
    plan.page(
        "/looks-missing",
        "broken-in-sitemap",
        linked=False,
        title="404 Not Found",
        h1="<h1>Page not found</h1>",
        text="It is not here.",
    )
    plan.link("/moved", "link-to-redirect")
    plan.link("/chain", "link-to-redirect")
    plan.moved("/chain", "/chain-1")
    plan.moved("/chain-1", "/sound")
    plan.link("/round", "broken-link")
    plan.moved("/round", "/round-1")
    plan.moved("/round-1", "/round")
    plan.link("/lost", "broken-link")
    plan.moved("/lost", "/no-end")
    plan.wrong |= {("redirect-chain", "/chain", "/sound"), ("redirect-broken", "/lost", "/no-end")}
    plan.wrong |= {("redirect-loop", "/round", "/round"), ("redirect-loop", "/round-1", "/round-1")}


def reading(plan):
    for path, code, body in (
        ("/picture", "unreadable", b"GIF89a<p>x"),
        ("/shell", "needs-script", b"<div id=root></div><script>start()</script>"),
    ):
        plan.site.answer(path, Answer(200, body), linked_from=None)
        plan.link(path)
        plan.listed.append(path)
        plan.wrong.add((code, path, ""))


def structure(plan):
    plan.page(
        "/insecure", "mixed-content", related="/lamp.png", body=f'<img src="http://a.test:{PORT}/lamp.png" alt="">'
    )
    plan.page(
        "/insecure-form",
        "insecure-form",
        related="/send",
        body=f'<form action="http://a.test:{PORT}/send"><input name=a></form>',
    )
    for number in range(1, 8):
        down = f'<a href="/down-{number + 1}">down</a>' if number < 7 else ""
        plan.page(
            f"/down-{number}", *(["deep-page"] if number == 7 else []), linked=number == 1, listed=False, body=down
        )
        plan.wrong.add(("missing-from-sitemap", f"/down-{number}", ""))
    plan.page("/long/" + "x" * 2_050, "url-too-long")


@pytest.mark.skipif(not tls.AVAILABLE, reason="openssl is not installed")
def test_every_kind_of_fault_is_found_only_where_it_was_planted(tmp_path):
    plan = Planted()
    for part in (titles, indexing, languages, links, reading, structure):
        part(plan)
    assert {code for code, _, _ in plan.wrong} == issue_kinds().keys() - UNPLANTED - NOTED
    with serve(plan.done(), certificate=tls.self_signed(tmp_path)) as server:
        found = audited(tmp_path / "kept", server, server.url("a.test", tls=True))
    assert (sorted(plan.wrong - found), sorted(found - plan.wrong)) == ([], [])


def test_faults_of_the_mixed_site_are_found_and_no_others_of_their_kinds(tmp_path):
    with serve(mixed_site()) as server:
        truth, found = server.truth, audited(tmp_path, server, server.url("mixed.test"))
    told = defaultdict(set)
    for code, url, related in found:
        told[code].add((url, related))
    with periplus.open(tmp_path) as collection:
        copies = {path_of(page.url) for page in collection.pages(reason="alias")}
    same = {path_of(url) for group in truth.duplicates for url in group}
    assert copies < same and {url for url, _ in told["duplicate"]} == same - copies
    assert (
        told["canonical-elsewhere"]
        == told["canonical-in-sitemap"]
        == {(path_of(url), path_of(named)) for url, named in truth.canonicals.items()}
    )
    assert told["orphan"] == {(path_of(url), "") for url in truth.orphans}
    assert told["hreflang-no-return"] == {
        ("/lang/other.html", f"/lang/{language}.html") for language in ("en", "cs", "hu")
    }
    assert told["charset-mismatch"] == {("/liar.html", ""), ("/wreck.html", "")}  # its stray bytes are not UTF-8
    assert told["near-duplicate"] == {("/liar.html", "/cz-full.html")}  # the same paragraphs with another heading
    assert {url for url, _ in told["unreadable"]} == {"/zip-as-html", "/almanac.pdf"}
    unknown = {
        code
        for code in told
        if code.startswith(
            ("broken", "redirect", "hreflang-b", "canonical-", "noindex", "robots", "soft", "mixed", "bad")
        )
    }
    assert unknown == {"canonical-elsewhere", "canonical-in-sitemap"}
