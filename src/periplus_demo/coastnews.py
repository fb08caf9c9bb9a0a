"""A small news web of an invented coast: dated posts, reprints with edits, comments with links, two topics, feeds, and
a digest.

The posts are in posts.txt: after `=== ` the site, the slug, the age in hours, the language and the title; then the
HTML. The pages depend only on these and on the current day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

from markupsafe import Markup

from periplus.values import JsonObject, frozen
from periplus_demo.harbours import HTML, WebAnswer, render, sections

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


@frozen
class Post:
    """A page of a site. body: HTML, with {slug@site} where the address of another post belongs."""

    site: str
    slug: str
    when: datetime
    language: str
    title: str
    body: str


def posts(today: datetime) -> list[Post]:
    """Every post, oldest first."""
    made = []
    for head, text in sections(Path(__file__).with_name("posts.txt").read_text("utf-8")):
        site, slug, hours, language, title = head.split(" | ")
        body = "".join(text.splitlines())
        made.append(Post(site, slug, today - timedelta(hours=float(hours)), language, title, body))
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
        title, _, dating = SITES[site]
        mine = [post for post in self.posts if post.site == site]
        values: JsonObject = {"site": site, "port": port, "title": title, "posts": mine}
        if path == "/feed.xml":
            feed = render("feed.xml", origin=origin, address=address, http_date=format_datetime, **values)
            return WebAnswer(200, "application/rss+xml", feed.encode())
        post = self.by_path.get((site, path))
        if post is None and path != "/":
            return WebAnswer(404, "text/plain", b"not here")
        body = Markup(self.linked(post.body, port)) if post else ""
        values |= {"post": post, "body": body, "dating": dating, "sites": SITES}
        return WebAnswer(200, HTML, render("news.html", path_of=path_of, origin=origin, **values).encode())

    def linked(self, body: str, port: str) -> str:
        for post in self.posts:
            body = body.replace(f"{{{post.slug}@{post.site}}}", address(post, port))
        return body


def origin(site: str, port: str) -> str:
    return f"http://{site}.{DOMAIN}{f':{port}' if port else ''}"


def path_of(post: Post) -> str:
    return f"/{post.when:%Y/%m/%d}/{post.slug}.html" if SITES[post.site][2] == "url" else f"/news/{post.slug}.html"


def address(post: Post, port: str) -> str:
    return origin(post.site, port) + path_of(post)


def starts(port: str) -> list[str]:
    """Start URLs of a crawl."""
    return [origin(site, port) + "/" for site in SITES]


def today_utc() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
