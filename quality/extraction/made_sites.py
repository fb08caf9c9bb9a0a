"""Generates pages with known content.

Four small sites, each with its own template: news (menu with the active item, date, related stories, comments), a
manual (contents beside the text, previous and next, lists of links that are content), a forum (posts between signatures
and rules) and a shop (a description among offers). Everything depends on one seed only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from gold import GoldPage

PAGES = 8
_SYLLABLES = (
    "ka",
    "lo",
    "mi",
    "ren",
    "tu",
    "sa",
    "vel",
    "dor",
    "pi",
    "nu",
    "gra",
    "est",
    "on",
    "fi",
    "hal",
    "ber",
    "zo",
    "lin",
    "tar",
    "mu",
)


class Writer:
    """Generates words, sentences and paragraphs."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)
        self.known = ["".join(self.rng.choices(_SYLLABLES, k=self.rng.choice((1, 2, 2, 3)))) for _ in range(700)]

    def words(self, least: int, most: int) -> str:
        return " ".join(self.rng.choices(self.known, k=self.rng.randint(least, most)))

    def title(self) -> str:
        return self.words(3, 7).capitalize()

    def sentence(self) -> str:
        text = self.words(6, 18)
        if self.rng.random() < 0.6:
            text = text.replace(" ", ", ", 1)
        return text.capitalize() + self.rng.choice("...?!")

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.rng.randint(2, 6)))


def _page(title: str, site: str, body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>{title} - {site}</title></head><body>{body}</body></html>"


def _items(texts: Sequence[str], active: int = -1) -> str:
    return "".join(
        f'<li{" class=active" if number == active else ""}><a href="/{number}">{text}</a></li>'
        for number, text in enumerate(texts)
    )


def news(writer: Writer) -> list[GoldPage]:
    """Stories with dates, related stories that differ on each page, and comments."""
    menu = [writer.words(1, 2) for _ in range(9)]
    titles = [writer.title() for _ in range(PAGES * 4)]
    pages = []
    for number in range(PAGES):
        story = [writer.paragraph() for _ in range(writer.rng.randint(4, 9))]
        related = _items(writer.rng.sample(titles, 6))
        comments = "".join(
            f'<div class="comment"><b>{writer.words(1, 1)}</b><p>{writer.sentence()}</p></div>' for _ in range(3)
        )
        body = (
            f'<div id="top"><ul class="menu">{_items(menu, number % 9)}</ul></div><div '
            f'id="article"><h1>{titles[number]}</h1>'
            '<div class="share"><a href="#">Share</a> <a '
            f'href="#">Print</a></div>{"".join(f"<p>{text}</p>" for text in story)}</div>'
            f'<div class="related"><h3>More stories</h3><ul>{related}</ul></div><div id="comments"><h3>{number + 2} '
            f"comments</h3>{comments}</div>"
            f'<div id="footer">Copyright 20{number + 10} Daily News | <a href="/imprint">Imprint</a> | <a '
            'href="/privacy">Privacy</a></div>'
        )
        pages.append(
            GoldPage("news.made", _page(titles[number], "Daily News", body), "\n".join([titles[number], *story]))
        )
    return pages


def manual(writer: Writer) -> list[GoldPage]:
    """Chapters with code and lists of links; the list of all chapters is on each page."""
    chapters = [writer.title() for _ in range(PAGES)]
    pages = []
    for number, chapter in enumerate(chapters):
        parts, gold = [], [chapter]
        for _ in range(3):
            heading, text, code = writer.title(), writer.paragraph(), writer.words(3, 9).replace(" ", "_") + "()"
            topics = [writer.words(2, 4) for _ in range(5)]
            parts.append(f"<h2>{heading}</h2><p>{text}</p><pre>{code}</pre><ul>{_items(topics)}</ul>")
            gold += [heading, text, code, *topics]
        body = (
            f'<div class="navheader"><a href="p">Prev</a> <a href="n">Next</a></div>'
            f'<div class="sidebar"><h3>Contents</h3><ul>{_items(chapters, number)}</ul></div>'
            f'<div class="section"><h1>{chapter}</h1>{"".join(parts)}</div>'
            '<div class="navfooter"><a href="p">Prev</a> <a href="/">Home</a> <a href="n">Next</a></div>'
        )
        pages.append(GoldPage("manual.made", _page(chapter, "The Manual", body), "\n".join(gold)))
    return pages


def forum(writer: Writer) -> list[GoldPage]:
    """Threads: each post beside the profile of its author."""
    boards = [writer.words(1, 3) for _ in range(7)]
    people = [(writer.words(1, 1), f"Posts: {writer.rng.randint(3, 900)}") for _ in range(6)]
    pages = []
    for number in range(PAGES):
        title = writer.title()
        posts = [writer.paragraph() for _ in range(writer.rng.randint(3, 6))]
        rows = "".join(
            (
                f'<tr class="post"><td class="user"><a href="/u">{name}</a><div>{count}</div></td><td '
                f'class="message"><p>{text}</p></td></tr>'
            )
            for text, (name, count) in ((text, writer.rng.choice(people)) for text in posts)
        )
        body = (
            f'<header><a href="/">Forum</a></header><nav><ul>{_items(boards, number % 7)}</ul></nav><h1>{title}</h1>'
            f'<table class="thread">{rows}</table>'
            '<p class="rules">You may not post new threads. You may not post replies. You may not edit your '
            "posts.</p><footer>Powered by a forum</footer>"
        )
        pages.append(GoldPage("forum.made", _page(title, "Forum", body), "\n".join([title, *posts])))
    return pages


def shop(writer: Writer) -> list[GoldPage]:
    """Goods with a description, among other offers."""
    kinds = [writer.words(1, 2) for _ in range(12)]
    pages = []
    for number in range(PAGES):
        name, price = writer.title(), f"{writer.rng.randint(3, 90)}.90 EUR"
        texts = [writer.paragraph() for _ in range(2)]
        facts = [(writer.words(1, 2), writer.words(1, 3)) for _ in range(5)]
        offers = "".join(
            (
                '<div class="tile"><a '
                f'href="/o">{writer.words(2, 4)}</a><span>{writer.rng.randint(3, 90)}.90 EUR</span></div>'
            )
            for _ in range(6)
        )
        rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in facts)
        body = (
            f'<div class="nav-bar"><ul>{_items(kinds, number)}</ul><div class="cart">Your cart is empty</div></div>'
            f'<main><h1>{name}</h1><p class="price">{price}</p>'
            f'<div class="description">{"".join(f"<p>{text}</p>" for text in texts)}</div><table '
            f'class="facts">{rows}</table></main>'
            "<aside><h2>You may also "
            f"like</h2>{offers}</aside><footer><ul>{_items(['Terms', 'Shipping', 'Returns'])}</ul></footer>"
        )
        gold = [name, price, *texts, *(word for pair in facts for word in pair)]
        pages.append(GoldPage("shop.made", _page(name, "Shop", body), "\n".join(gold)))
    return pages


MAKERS: tuple[Callable[[Writer], list[GoldPage]], ...] = (news, manual, forum, shop)


def made() -> list[GoldPage]:
    """All pages of the four sites, the same each time."""
    return [page for maker in MAKERS for page in maker(Writer(maker.__name__))]
