"""Sites of eight towns that link to each other and to other sites: a small web for link studies.

The offices that many towns link to answer too, so that a study can read them; other linked hosts never answer. The
pages are the same every time.
"""

from __future__ import annotations

import random

from markupsafe import Markup, escape

from periplus_demo.harbours import HTML, WebAnswer, render

TOWNS = {  # host: (name, pages)
    "averby.example": ("Averby", 24),
    "vellmouth.example": ("Vellmouth", 40),
    "port-lorne.example": ("Port Lorne", 32),
    "thornmouth.example": ("Thornmouth", 18),
    "kestrel-haven.example": ("Kestrel Haven", 12),
    "grey-skerry.example": ("Grey Skerry", 9),
    "sandholm.example": ("Sandholm", 15),
    "old-quay.example": ("Old Quay", 10),
}
OFFICES = {  # host: (what it is, share of the towns' pages that link to it)
    "tide-tables.example": ("The tide tables", 0.30),
    "weather.example": ("The weather office", 0.22),
    "pilotage.example": ("The guild of pilots", 0.12),
    "chandlers.example": ("Chandlers of the coast", 0.06),
}
TRADES = ("rope", "nets", "sails", "lamps", "salt", "tar", "oak", "maps", "bread", "bells", "wool", "clocks")
MATTERS = (
    "the quay",
    "the market",
    "the council",
    "the school",
    "the ferry",
    "the church",
    "the lifeboat",
    "the library",
    "the fair",
    "the baths",
    "the harbour dues",
    "the railway",
)


def answer(host: str, path: str, port: str) -> WebAnswer:
    """The answer of a town or an office. port: in its links to other hosts; empty for none."""
    if path == "/robots.txt":
        return WebAnswer(404, "text/plain", b"none")
    number = 0 if path == "/" else _number(path)
    if host in OFFICES:
        return _page(OFFICES[host][0], [], "<p>Open on weekdays.</p>") if number == 0 else WebAnswer(404, HTML, b"")
    name, pages = TOWNS[host]
    if not 0 <= number < pages:
        return WebAnswer(404, HTML, b"")
    title = f"{name}: {_matter(number)}" if number else f"The town of {name}"
    children = range(4 * number + 1, min(pages, 4 * number + 5))  # in a tree whose nodes have four
    return _page(title, [(child, _matter(child)) for child in children], _outer(host, name, number, port))


def _number(path: str) -> int:
    text = path.removeprefix("/page/").removesuffix(".html")
    return int(text) if path.startswith("/page/") and text.isascii() and text.isdecimal() and len(text) < 4 else -1


def _matter(number: int) -> str:
    return MATTERS[number % len(MATTERS)] + (f", part {number // len(MATTERS) + 1}" if number >= len(MATTERS) else "")


def _outer(host: str, name: str, number: int, port: str) -> str:
    """A few sentences with links to other towns, to offices, and to a trader that only this town links to."""
    rng = random.Random(f"{host} {number}")
    sentences = [f"The clerk of {name} wrote in book {number + 1} what was decided about {_matter(number)}."]
    others = [other for other in TOWNS if other != host]
    weights = [TOWNS[other][1] for other in others]  # large towns get more links
    for other in dict.fromkeys(rng.choices(others, weights, k=rng.choice((0, 0, 1, 1, 2)))):
        path = rng.choice(("/", "/", f"/page/{rng.randrange(1, TOWNS[other][1])}.html"))
        sentences.append(f"See also {_link(other, path, port, TOWNS[other][0])}.")
    sentences += [
        f"Ask {_link(office, '/', port, what[0].lower() + what[1:])}."
        for office, (what, share) in OFFICES.items()
        if rng.random() < share
    ]
    if rng.random() < 0.25:
        trade = rng.choice(TRADES)
        sentences.append(f"Delivered by {_link(f'{trade}-{host}', '/', port, f'a maker of {trade}')}.")
    rng.shuffle(sentences)
    return f"<p>{' '.join(sentences)}</p>"


def _link(host: str, path: str, port: str, words: str) -> str:
    return f'<a href="http://{host}{port and ":" + port}{path}">{escape(words)}</a>'


def _page(title: str, inner: list[tuple[int, str]], text: str) -> WebAnswer:
    """inner: (number, subject) of the pages below it. text: HTML."""
    return WebAnswer(200, HTML, render("town.html", title=title, inner=inner, text=Markup(text)).encode())


def starts(port: str) -> list[str]:
    """Start URLs of a study of the towns."""
    return [f"http://{host}{port and ':' + port}/" for host in TOWNS]
