"""A small news web of an invented coast: dated posts, reprints with edits, comments with links, two topics, feeds, and
a digest.

The texts are in stories.txt and singles.txt. The pages depend only on these and on the current day.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from pathlib import Path

from periplus_demo.harbours import WebAnswer

HERE = Path(__file__).parent
SITES = {  # name: (title, topic, how it dates its pages)
    "gazette": ("The Vellmouth Gazette", "both", "json-ld"),
    "coastwatch": ("Coast Watch", "sea", "meta"),
    "harbourpost": ("Harbour Post", "sea", "time"),
    "lampkeepers": ("The Lampkeepers", "sea", "json-ld"),
    "northpilot": ("North Pilot", "sea", "url"),
    "tides": ("Tides and Times", "sea", "meta"),
    "orchardist": ("The Orchardist", "land", "time"),
    "hillfarm": ("Hill Farm", "land", "json-ld"),
    "market": ("Hollin Market", "land", "text"),
    "sennight": ("The Sennight", "digest", "json-ld"),
}
DOMAIN = "example"
RETOLD = ("full", "cut", "comment", "edited", "comment")  # versions of a story on the sites after the source, in turn
WORDS = {
    "said": "stated",
    "town": "place",
    "first": "earliest",
    "because": "since",
    "year": "twelvemonth",
    "and": "as well as",
    "boats": "craft",
}
OPENINGS = (
    "From our neighbours:",
    "We read with interest what follows.",
    "Reported along the coast:",
    "Every harbour knows the story:",
)
REMARKS = (
    "We would have written it shorter, and with fewer people in it, but none of us was there.",
    "The view from our window agrees with it as far as the chimney.",
    "Our correspondent confirms the hour, disputes the weather, and has gone to bed.",
    "There is more to this, write all readers of the first half.",
    "For want of room we give only the beginning, and thank three readers for the same cutting.",
    "The last time a thing of this kind happened the paper was sold out by nine, and the baker by ten.",
    "Older people will remember that it was tried before, and younger people that it did not help.",
    "A drawing of the scene hangs in our office, made by an artist looking the other way.",
    "We have asked the parish, the guild and the weather glass, and all three are waiting for rain.",
    "It is the second time this season that good news has come from that side of the bridge.",
    "Our staff is not related to any of the people named, which is rare, and we are proud of it.",
    "If half of it is true it was a remarkable morning; we believe the other half as well.",
    "Our neighbour across the street has held this view for years, and is now difficult to live with.",
    "A longer article was promised to us by the schoolmaster; he is still looking for the right verb.",
    "We keep a list of such cases in the top drawer, under the string, and have added a line.",
    "The council had no comment on it, at length, from seven until a quarter to eleven.",
    "The key to the boathouse is missing; please return it, for reasons that will be plain.",
    "It should be added that the dog was found, dry and in excellent spirits, two farms further up.",
    "The people present speak of nothing else, and the people absent speak of it even more.",
    "In fairness, the other paper had it first, though not with this comma.",
)


@dataclass(frozen=True)
class Post:
    """A page of a site. body: HTML, with {slug@site} where the address of another post belongs."""

    site: str
    slug: str
    title: str
    body: str
    when: datetime
    language: str = "en"


def sections(name: str) -> list[tuple[list[str], str]]:
    """(the fields of each head line, the text below it)."""
    parts = (HERE / name).read_text("utf-8").split("=== ")[1:]
    return [
        ([field.strip() for field in head.split("|")], text.strip())
        for head, _, text in (part.partition("\n") for part in parts)
    ]


def tellers(topic: str, rng: random.Random) -> list[str]:
    """Three to five sites that publish a story of a topic, the source first."""
    fit = [name for name, (_, own, _) in SITES.items() if own in (topic, "both")]
    return rng.sample(fit, min(len(fit), rng.randint(3, 5)))


def retold(kind: str, paragraphs: list[str], source: str, number: int) -> str:
    """A version of a story. number: selects its opening and remark, so that comments differ."""
    opening, remark = OPENINGS[number % len(OPENINGS)], REMARKS[number % len(REMARKS)]
    if kind == "comment":
        first = paragraphs[0].split(". ")[0]
        return f'<p>{opening} <a href="{source}">{escape(first)}</a>.</p><p>{escape(remark)}</p>'
    if kind == "cut":
        return (
            f"<p>{opening}</p>"
            + html_of(paragraphs[: max(2, len(paragraphs) - 1)])
            + f'<p>The rest is in <a href="{source}">the first report</a>.</p>'
        )
    if kind == "edited":
        paragraphs = [" ".join(WORDS.get(word, word) for word in paragraph.split()) for paragraph in paragraphs]
    return html_of(paragraphs)


def html_of(paragraphs: list[str]) -> str:
    return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)


def posts(today: datetime) -> list[Post]:
    """Every post, oldest first."""
    rng = random.Random(7)
    made: list[Post] = []
    for fields, text in sections("stories.txt"):
        slug, topic, ago = fields[0], fields[1], float(fields[2])
        language = fields[3] if len(fields) > 3 else "en"
        title, _, rest = text.removeprefix("# ").partition("\n")
        paragraphs = [paragraph.replace("\n", " ") for paragraph in rest.strip().split("\n\n")]
        when = today - timedelta(days=ago)
        for place, site in enumerate(tellers(topic, rng)):
            if not place:
                source = f"{{{slug}@{site}}}"
            kind = RETOLD[(place - 1 + len(made)) % len(RETOLD)] if place else "full"
            body = html_of(paragraphs) if not place else retold(kind, paragraphs, source, len(made))
            name = title if kind != "comment" else f"On the news: {title[0].lower()}{title[1:]}"
            made.append(Post(site, slug, name, body, when, language))
            when += timedelta(hours=rng.uniform(0.6, 14))
    for (site, days, title), text in sections("singles.txt"):
        made.append(
            Post(
                site,
                title.lower().replace(" ", "-").replace("'", ""),
                title,
                html_of([text]),
                today - timedelta(days=float(days)),
            )
        )
    made = [post for post in made if post.when <= today]
    return sorted([*made, *digests(made, today)], key=lambda post: (post.when, post.site))


def digests(earlier: list[Post], today: datetime) -> list[Post]:
    """A weekly list of links with a line on each; it must not join all stories into one."""
    made = []
    for week in (2, 1, 0):
        end = today - timedelta(days=7 * week, hours=3)
        week_posts = [post for post in earlier if end - timedelta(days=7) <= post.when < end and len(post.body) > 700]
        items = "".join(
            f'<li><a href="{{{post.slug}@{post.site}}}">{escape(post.title)}</a>, in {SITES[post.site][0]}</li>'
            for post in week_posts
        )
        made.append(
            Post(
                "sennight",
                f"week-{3 - week}",
                f"News of the week, number {3 - week}",
                f"<p>Seven days of the coast and the valley.</p><ul>{items}</ul>",
                end,
            )
        )
    return made


class NewsWeb:
    """All sites of the web, by the name in the Host field."""

    def __init__(self, today: datetime) -> None:
        self.posts = posts(today)
        self.by_path = {(post.site, path_of(post)): post for post in self.posts}

    def answer(self, path: str, base: str, serial: int) -> WebAnswer:
        """base: scheme and host of the request."""
        del serial
        host = base.partition("://")[2]
        site, port = host.partition(".")[0], host.partition(":")[2]
        if site not in SITES:
            return WebAnswer(404, "text/plain", b"no such site")
        if path == "/feed.xml":
            return WebAnswer(200, "application/rss+xml", self.feed(site, port).encode())
        if path == "/":
            return WebAnswer(200, "text/html; charset=utf-8", self.home(site, port).encode())
        post = self.by_path.get((site, path))
        return (
            WebAnswer(200, "text/html; charset=utf-8", self.page(post, port).encode())
            if post
            else WebAnswer(404, "text/plain", b"not here")
        )

    def linked(self, body: str, port: str) -> str:
        for post in self.posts:
            body = body.replace(f"{{{post.slug}@{post.site}}}", address(post, port))
        return body

    def home(self, site: str, port: str) -> str:
        mine = sorted((post for post in self.posts if post.site == site), key=lambda post: post.when, reverse=True)
        items = "".join(f'<li><a href="{path_of(post)}">{escape(post.title)}</a></li>' for post in mine)
        title = SITES[site][0]
        friends = "".join(
            f' <a href="{origin(other, port)}/">{name}</a>' for other, (name, _, _) in SITES.items() if other != site
        )
        feed = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">' if site != "market" else ""
        return (
            f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{title}</title>{feed}<h1>{title}</h1>"
            f"<main><ul>{items}</ul></main><footer>Elsewhere:{friends}</footer></html>"
        )

    def page(self, post: Post, port: str) -> str:
        title = SITES[post.site][0]
        head, byline = dated(SITES[post.site][2], post.when)
        return (
            f"<!DOCTYPE html><html lang={post.language}><meta "
            f"charset=utf-8><title>{escape(post.title)} | {title}</title>{head}"
            f"<header><a href='/'>{title}</a></header><main><article><h1>{escape(post.title)}</h1>"
            f"{byline}{self.linked(post.body, port)}</article></main>"
            "<footer><a href='/'>Home</a> <a href='/feed.xml'>Feed</a> Set in type and sent "
            f"out by {title}.</footer></html>"
        )

    def feed(self, site: str, port: str) -> str:
        items = "".join(
            (
                f"<item><title>{escape(post.title)}</title><link>{address(post, port)}</link><pubDate>"
                f"{format_datetime(post.when)}</pubDate></item>"
            )
            for post in self.posts
            if post.site == site
        )
        title = SITES[site][0]
        return (
            '<?xml version="1.0"?><rss '
            f'version="2.0"><channel><title>{title}</title><link>{origin(site, port)}/</link>'
            f"<description/>{items}</channel></rss>"
        )


def origin(site: str, port: str) -> str:
    return f"http://{site}.{DOMAIN}{f':{port}' if port else ''}"


def path_of(post: Post) -> str:
    return f"/{post.when:%Y/%m/%d}/{post.slug}.html" if SITES[post.site][2] == "url" else f"/news/{post.slug}.html"


def address(post: Post, port: str) -> str:
    return origin(post.site, port) + path_of(post)


def dated(how: str, when: datetime) -> tuple[str, str]:
    """(markup in the head, markup in the text) for a way of dating pages."""
    iso = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "json-ld": (
            f'<script type="application/ld+json">{{"@type": "NewsArticle", "datePublished": "{iso}"}}</script>',
            "",
        ),
        "meta": (f'<meta property="article:published_time" content="{iso}">', ""),
        "time": ("", f'<p>By our staff, <time datetime="{iso}">{when:%d %B}</time></p>'),
        "text": ("", f"<p>Published {when:%d %B %Y, %H:%M}</p>"),
    }.get(how, ("", ""))


def starts(port: str) -> list[str]:
    """Start URLs of a crawl."""
    return [origin(site, port) + "/" for site in SITES]


def today_utc() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
