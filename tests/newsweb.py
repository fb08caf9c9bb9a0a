"""A synthetic news web whose stories are known: dated posts, edited reprints, linking comments, follow-ups, digests,
boilerplate.

    web = news_web(NewsRecipe(seed=1))
    stored(folder, web.pages, web.starts)       # of tests/stored.py
    web.story_of[url], web.source_of[story], web.published[url], web.digests

Words are invented. The web has two topics, a shared licence note on a third of the sites, a menu, a sidebar with links
to other sites on each page, a blogroll that is the same on all pages of a site, background links from follow-ups to
the earlier story, two digest sites (one with excerpts, one with links only), and pages whose story is on no other page.
Sites differ in how they date their pages.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

START = 1_704_067_200.0  # 2024-01-01
DAY = 86_400.0
_COMMON = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
    "have",
    "from",
    "or",
    "had",
    "an",
    "they",
    "which",
    "one",
    "you",
    "were",
    "all",
    "her",
    "she",
    "there",
    "would",
    "their",
    "we",
    "him",
    "been",
    "has",
    "when",
    "who",
    "will",
    "no",
    "more",
    "if",
    "out",
    "so",
    "said",
    "what",
    "up",
    "its",
    "about",
    "into",
    "than",
    "them",
    "can",
    "only",
    "other",
]
_MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "cs": [
        "ledna",
        "února",
        "března",
        "dubna",
        "května",
        "června",
        "července",
        "srpna",
        "září",
        "října",
        "listopadu",
        "prosince",
    ],
    "ru": [
        "января",
        "февраля",
        "марта",
        "апреля",
        "мая",
        "июня",
        "июля",
        "августа",
        "сентября",
        "октября",
        "ноября",
        "декабря",
    ],
}
DATED = ("json-ld", "meta", "time", "url", "text-en", "text-cs", "text-ru", "none")


@dataclass(frozen=True)
class NewsRecipe:
    """Seed and size of the web."""

    seed: int = 1
    sites: int = 24
    stories: int = 40
    singles: int = 80
    days: int = 60


@dataclass
class NewsWeb:
    """The pages by URL, in the form of tests/stored.py, and the facts that a test compares with."""

    pages: dict[str, str] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    story_of: dict[str, int] = field(default_factory=dict)  # by URL; pages without a story are missing
    source_of: dict[int, str] = field(default_factory=dict)
    topic_of: dict[int, int] = field(default_factory=dict)  # 0 or 1, by story
    published: dict[str, float] = field(default_factory=dict)
    dated: dict[str, str] = field(default_factory=dict)  # format of the date, a value of DATED
    digests: set[str] = field(default_factory=set)
    now: float = 0.0


@dataclass
class _Post:
    site: int
    slug: str
    title: str
    paragraphs: list[str]  # HTML
    when: float


class _Maker:
    def __init__(self, recipe: NewsRecipe) -> None:
        self.recipe, self.rng = recipe, random.Random(recipe.seed)
        self.web = NewsWeb(now=START + (recipe.days + 20) * DAY)
        self.topics = [[self.word() for _ in range(160)] for _ in range(2)]
        self.hosts = [f"news{place}.test" for place in range(recipe.sites)] + ["weekly.test", "linklist.test"]
        self.posts: list[_Post] = []
        self.licence = self.sentence(self.topics[0], [], 28)
        self.about = [self.sentence(self.topics[1], [], 40) for _ in self.hosts]

    def word(self) -> str:
        return "".join(
            self.rng.choice("bcdfghjklmnprstvz") + self.rng.choice("aeiouy") for _ in range(self.rng.randint(2, 4))
        )

    def sentence(self, topic: Sequence[str], names: Sequence[str], length: int = 0) -> str:
        words = []
        for _ in range(length or self.rng.randint(8, 18)):
            kind = self.rng.random()
            words.append(
                self.rng.choice(names)
                if names and kind > 0.78
                else self.rng.choice(topic)
                if kind > 0.45
                else self.rng.choice(_COMMON)
            )
        return " ".join(words).capitalize() + "."

    def edited(self, sentence: str, share: float, topic: Sequence[str]) -> str:
        return " ".join(self.rng.choice(topic) if self.rng.random() < share else word for word in sentence.split())

    def url(self, post: _Post) -> str:
        day = (
            time.strftime("/%Y/%m/%d/", time.gmtime(post.when)) if DATED[post.site % len(DATED)] == "url" else "/news/"
        )
        return f"https://{self.hosts[post.site]}{day}{post.slug}"

    def add(self, post: _Post, story: int | None) -> str:
        self.posts.append(post)
        url = self.url(post)
        if story is not None:
            self.web.story_of[url] = story
        self.web.published[url] = post.when
        self.web.dated[url] = DATED[post.site % len(DATED)]
        return url

    def story(self, number: int, before: tuple[list[str], str] | None) -> tuple[list[str], str, list[str], str]:
        """(names, URL of the source, first sentences, title). before: names and source of the continued story."""
        topic = self.topics[number % 2]
        names = [self.word() for _ in range(9)] + (before[0][:2] if before else [])
        sentences = [self.sentence(topic, names) for _ in range(self.rng.randint(12, 24))]
        title = " ".join([*self.rng.sample(names, 3), *self.rng.sample(topic, 2)]).capitalize()
        when = START + self.rng.random() * self.recipe.days * DAY
        sites = self.rng.sample(range(self.recipe.sites), self.rng.randint(3, 9))
        paragraphs = self.paragraphs(sentences)
        if before:
            paragraphs.append(
                f'<p>{self.sentence(topic, names)} Earlier: <a href="{before[1]}">{" ".join(before[0][:3])}</a>.</p>'
            )
        source = self.add(_Post(sites[0], f"s{number}", title, paragraphs, when), number)
        self.web.source_of[number], self.web.topic_of[number] = source, number % 2
        known = [source]
        for place, site in enumerate(sites[1:], 1):
            when += self.rng.random() * DAY
            kind = self.rng.choice(("full", "cut", "edited", "heavy", "comment", "comment"))
            body, name = self.retold(kind, sentences, topic, names), title
            if kind == "comment" or self.rng.random() < 0.4:
                cited = self.rng.choice(known) if self.rng.random() < 0.4 else source
                body.append(
                    f'<p>{self.sentence(topic, [])} <a href="{cited}">{" ".join(self.rng.sample(names, 2))}</a> '
                    f"{self.sentence(topic, names)}</p>"
                )
                name = (
                    " ".join([*self.rng.sample(topic, 3), self.rng.choice(names)]).capitalize()
                    if kind == "comment"
                    else title
                )
            known.append(self.add(_Post(site, f"s{number}-{place}", name, body, when), number))
        return names, source, sentences[:2], title

    def retold(self, kind: str, sentences: Sequence[str], topic: Sequence[str], names: Sequence[str]) -> list[str]:
        own = self.sentence(topic, names)
        if kind == "full":
            return self.paragraphs([own, *sentences])
        if kind == "cut":
            return self.paragraphs([own, *sentences[: max(5, int(len(sentences) * self.rng.uniform(0.4, 0.7)))]])
        if kind == "edited":
            return self.paragraphs([self.edited(sentence, 0.1, topic) for sentence in sentences])
        if kind == "heavy":
            kept = [self.edited(sentence, 0.15, topic) for sentence in sentences if self.rng.random() < 0.7]
            return self.paragraphs([*kept, own, self.sentence(topic, names)])
        return self.paragraphs(
            [self.sentence(topic, names if self.rng.random() < 0.5 else []) for _ in range(self.rng.randint(4, 8))]
        )

    def paragraphs(self, sentences: Sequence[str]) -> list[str]:
        return [f"<p>{' '.join(sentences[start : start + 3])}</p>" for start in range(0, len(sentences), 3)]

    def digests(self, stories: Sequence[tuple[list[str], str, list[str], str]]) -> None:
        by_week: dict[int, list[tuple[list[str], str, list[str], str]]] = {}
        for story in stories:
            by_week.setdefault(int((self.web.published[story[1]] - START) // (7 * DAY)), []).append(story)
        for week, members in sorted(by_week.items()):
            if len(members) == 1:
                continue  # a page about one story belongs to that story
            when = START + (week + 1) * 7 * DAY
            excerpts = [
                (
                    f"<h2>{title}</h2><p>{' '.join(first)} {self.sentence(self.topics[0], [])} <a "
                    f'href="{url}">{title}</a></p>'
                )
                for _, url, first, title in members
            ]
            listed = [
                f"<ul>{''.join(f'<li><a href={url!r}>{title}</a> {self.sentence(self.topics[1], [], 6)}</li>' for _, url, _, title in members)}</ul>"  # noqa: E501
            ]
            for site, body in ((self.recipe.sites, excerpts), (self.recipe.sites + 1, listed)):
                url = self.add(_Post(site, f"week-{week}", f"The week {week}", body, when), None)
                if len(members) > 2:  # with two stories the page may be mostly about one of them
                    self.web.digests.add(url)

    def singles(self) -> None:
        for number in range(self.recipe.singles):
            topic = self.topics[number % 2]
            names = [self.word() for _ in range(8)]
            body = self.paragraphs([self.sentence(topic, names) for _ in range(self.rng.randint(6, 20))])
            when = START + self.rng.random() * self.recipe.days * DAY
            self.add(
                _Post(
                    self.rng.randrange(self.recipe.sites), f"x{number}", self.sentence(topic, names, 5)[:-1], body, when
                ),
                None,
            )

    def written(self) -> NewsWeb:
        urls = [self.url(post) for post in self.posts]
        blogroll = [self.rng.sample(urls, 3) for _ in self.hosts]
        by_site: dict[int, list[str]] = {}
        for post, url in zip(self.posts, urls, strict=True):
            by_site.setdefault(post.site, []).append(url)
            self.web.pages[url] = self.html(post, self.rng.sample(urls, 2), blogroll[post.site])
        for site, host in enumerate(self.hosts):
            start = f"https://{host}/"
            links = "".join(
                f'<li><a href="{url}">{self.sentence(self.topics[0], [], 4)}</a></li>' for url in by_site.get(site, ())
            )
            self.web.pages[start] = (
                "<!DOCTYPE html><html "
                f"lang=en><title>{host}</title><h1>{host}</h1><p>{self.about[site]}</p><ul>{links}</ul>"
            )
            self.web.starts.append(start)
        return self.web

    def html(self, post: _Post, sidebar: Sequence[str], blogroll: Sequence[str]) -> str:
        head, byline = dated(DATED[post.site % len(DATED)], post.when)
        note = f"<p>{self.licence}</p>" if post.site % 3 == 0 else ""
        roll = "".join(f'<a href="{url}">{url[8:14]}</a> ' for url in blogroll)
        side = "".join(f'<a href="{url}">Elsewhere {place}</a> ' for place, url in enumerate(sidebar))
        return (
            f"<!DOCTYPE html><html lang=en><title>{post.title} | "
            f"{self.hosts[post.site]}</title>{head}<nav><a href='/'>Home</a></nav>"
            f"<main><article><h1>{post.title}</h1>{byline}{''.join(post.paragraphs)}{note}</article></main>"
            f"<aside>{side}</aside><div><p>{self.about[post.site]}</p><p>Friends: {roll}</p></div><footer>All rights "
            f"{self.hosts[post.site]}</footer>"
        )


def dated(how: str, when: float) -> tuple[str, str]:
    """(head, byline) of a page with a date in this format."""
    at = time.gmtime(when)
    if how == "json-ld":
        return (
            (
                '<script type="application/ld+json">'
                f'{{"@type":"NewsArticle","datePublished":"{time.strftime("%Y-%m-%dT%H:%M:%SZ", at)}"}}</script>'
            ),
            "",
        )
    if how == "meta":
        return f'<meta property="article:published_time" content="{time.strftime("%Y-%m-%dT%H:%M:%S+00:00", at)}">', ""
    if how == "time":
        return "", f'<p>By us, <time datetime="{time.strftime("%Y-%m-%dT%H:%MZ", at)}">then</time></p>'
    if how.startswith("text-"):
        month = _MONTHS[how[5:]][at.tm_mon - 1]
        return "", {
            "en": f"<p>Published {month} {at.tm_mday}, {at.tm_year}</p>",
            "cs": f"<p>Vydáno {at.tm_mday}. {month} {at.tm_year} v {at.tm_hour}:{at.tm_min:02}</p>",
            "ru": f"<p>Опубликовано {at.tm_mday} {month} {at.tm_year} г.</p>",
        }[how[5:]]
    return "", ""


def news_web(recipe: NewsRecipe) -> NewsWeb:
    """The web of a recipe, the same for the same recipe."""
    maker = _Maker(recipe)
    stories = []
    for number in range(recipe.stories):
        before = stories[-2] if number % 4 == 3 else None  # the same topic
        stories.append(maker.story(number, (before[0], before[1]) if before else None))
    maker.singles()
    maker.digests(stories)
    return maker.written()
