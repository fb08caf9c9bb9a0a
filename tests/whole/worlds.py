"""A town's website that never ends: real pages, and beside them everything on such sites that a crawler can be lost in.

Made without looking at `testweb.traps`, whose traps are of another kind: here the calendar has days and weeks, the tree
ever new names, the facets any order, and a session stands in the query, in the path, or in the words of the links too.
Every trap hides real pages.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape

from testweb import Answer, Asked, Site

HOST = "town.test"
_SYLLABLES = re.findall("...", "barceldunfergolhinjaskellommarnevostpilrudsartovundvelwimyarzetashbroclidre")
_COLOURS, _MAKERS = ("amber", "blue", "coral", "dun", "ecru"), ("Adler", "Berg", "Conti", "Duval", "Ek")
_ORDERS, _SIZES = ("newest", "oldest", "dearest", "cheapest"), ("12", "24", "48")
_FACETS = {"colour": _COLOURS, "maker": _MAKERS, "sort": _ORDERS, "per": _SIZES}
_FIRST_DAY = datetime.date(2031, 3, 1)  # the calendar's own today: no test depends on the day on which it runs


@dataclass(slots=True)
class World:
    """A site with its truth.

    real: paths of pages that must be read, each under this address or, in a session, under any id.
    """

    site: Site
    real: set[str] = field(default_factory=set)
    traps: dict[str, re.Pattern[str]] = field(default_factory=dict)  # by name: which targets it answers

    def trap_of(self, target: str) -> str | None:
        """The trap that a target (path and query) belongs to; none for a real page under its own address."""
        if target in self.real:
            return None
        return next((name for name, pattern in self.traps.items() if pattern.match(target)), None)

    def lost(self, targets: Iterable[str]) -> set[str]:
        """Real pages that are not among the targets that were read."""
        return self.real - {without_session(target) for target in targets}


def without_session(target: str) -> str:
    """The target without a session's id, in any of the four places where this site writes one."""
    target = re.sub(r";jsessionid=\w+", "", target)
    target = re.sub(r"^/desk/k[0-9a-f]{16}/", "/desk/", target)
    return re.sub(r"\?(?:sid|ticket)=\w+$", "", target)


def town(seed: int = 1, stories: int = 240, traps: Iterable[str] | None = None, host: str = HOST) -> World:
    """A site of about 5/3 as many real pages as stories, with the traps of those names; None: all of TRAPS."""
    world = World(Site(host))
    rng = random.Random(seed)
    doors = [*_newspaper(world, rng, stories)]
    for name in TRAPS if traps is None else traps:
        doors.append((TRAPS[name](world, rng), name.replace("_", " ").capitalize()))
    _add(
        world,
        "/",
        "The town",
        "Everything about a town by the river, for those who live in it and those who come by.",
        doors,
    )
    return world


def _newspaper(world: World, rng: random.Random, stories: int) -> Iterable[tuple[str, str]]:
    """Stories with words of their own; lists in pages, writers and tags, which only repeat titles;
    a feed for each writer.
    """
    titles = {
        f"/story/{number}-{_words(rng, 2).replace(' ', '-')}": _words(rng, 6).capitalize() for number in range(stories)
    }
    writers = {f"/writer/{_words(rng, 2).replace(' ', '-')}": [] for _ in range(max(stories // 3, 2))}
    tags: dict[str, list[str]] = {f"/tag/{_words(rng, 1)}": [] for _ in range(max(stories // 6, 2))}
    for path in titles:
        for table in (writers, tags):
            for key in rng.sample(sorted(table), 2):
                table[key].append(path)
    for path, title in titles.items():
        near = [
            (key, key.rpartition("/")[2].replace("-", " ").title())
            for table in (writers, tags)
            for key, own in table.items()
            if path in own
        ]
        _add(world, path, title, _sentences(rng, 120), near)
    for path, own in (*writers.items(), *tags.items()):
        if own:
            feed = (
                f'<link rel="alternate" type="application/rss+xml" href="{path}/feed.xml">' if path in writers else ""
            )
            _add(
                world,
                path,
                path.rpartition("/")[2].replace("-", " ").title(),
                "",
                [(story, titles[story]) for story in own],
                feed,
            )
            items = "".join(
                f"<item><title>{titles[story]}</title><link>{world.site.url(story)}</link></item>" for story in own
            )
            body = (
                "<?xml version='1.0'?><rss "
                f"version='2.0'><channel><title>Feed</title><link>{world.site.url(path)}</link>{items}</channel></rss>"
            )
            world.site.routes.exact[f"{path}/feed.xml"] = lambda asked, body=body: Answer(
                body=body.encode(), media_type="application/rss+xml"
            )
    paths = list(titles)
    pages = range(1, (len(paths) + 9) // 10 + 1)
    for page in pages:
        own = paths[page * 10 - 10 : page * 10]
        near = [(f"/news?page={other}", str(other)) for other in (page - 1, page + 1) if other in pages]
        _add(world, f"/news?page={page}", f"News, page {page}", "", [*((path, titles[path]) for path in own), *near])
    return [("/news?page=1", "News")]


def calendar(world: World, rng: random.Random) -> str:
    """Months, weeks and days without end, forth and back; real events in the first of them."""
    events: dict[datetime.date, tuple[str, str]] = {}
    for number in range(10):
        path, title = f"/event/{number}-{_words(rng, 1)}", _words(rng, 4).capitalize()
        events[_FIRST_DAY + datetime.timedelta(days=number * 6)] = (path, title)
        _add(world, path, title, _sentences(rng, 60), [("/", "Home")])

    def reply(asked: Asked) -> Answer:
        shown = _date(asked.parameters.get("date", ""))
        view = asked.parameters.get("view", "month")
        span = {"month": 28, "week": 7, "day": 1}.get(view, 28)
        days = [shown + datetime.timedelta(days=day) for day in range(span)]
        links = [
            (f"/calendar?view={view}&date={shown + datetime.timedelta(days=step)}", words)
            for step, words in ((-span, "earlier"), (span, "later"))
        ]
        links += [(f"/calendar?view={other}&date={shown}", other) for other in ("month", "week", "day")]
        links += [(f"/calendar?view=day&date={day}", f"{day:%A %d}") for day in days]
        links += [events[day] for day in days if day in events]
        return _page(f"{shown:%B %Y}", f"There is nothing on {shown:%A, %d %B %Y}." if view == "day" else "", links)

    world.site.routes.exact["/calendar"] = reply
    world.traps["calendar"] = re.compile(r"/calendar\b")
    return "/calendar?view=month&date=2031-03-01"


def tree(world: World, rng: random.Random) -> str:
    """Folders of folders with ever new names, each saying nothing but its own name;
    a real page in each of the first few.
    """
    hidden = {}
    for number in range(6):
        path = f"/records/{_words(rng, 1)}.html"
        hidden[number] = path
        _add(world, path, _words(rng, 3).capitalize(), _sentences(rng, 60), [("/", "Home")])

    def reply(asked: Asked) -> Answer:
        own = random.Random(asked.path)
        names = sorted({_words(own, 1) for _ in range(6)})
        depth = asked.path.count("/") - 2
        real = (
            [(hidden[own.randrange(6)], "A record"), *((path, "A record") for path in hidden.values() if depth == 0)]
            if depth < 2
            else []
        )
        return _page(
            f"Folder {asked.path.rstrip('/').rpartition('/')[2]}", "", [*((f"{name}/", name) for name in names), *real]
        )

    world.site.routes.prefixes["/records/"] = reply
    world.traps["tree"] = re.compile(r"/records/")
    return "/records/"


def facets(world: World, rng: random.Random) -> str:
    """Thirty things in any choice of four facets, each set or not, in the order in which they were chosen:
    thousands of addresses.
    """
    things = {f"/thing/{number}": f"{rng.choice(_MAKERS)} {_words(rng, 2)}" for number in range(30)}
    for path, title in things.items():
        _add(world, path, title, _sentences(rng, 50), [("/shop", "The shop")])

    def reply(asked: Asked) -> Answer:
        chosen = asked.parameters
        shown = random.Random(repr(sorted(chosen.items()))).sample(sorted(things), 12) if chosen else list(things)
        links = [(path, things[path]) for path in shown]
        for name, values in _FACETS.items():
            for value in values:
                picked = {**{key: item for key, item in chosen.items() if key != name}, name: value}
                links.append(("/shop?" + "&".join(f"{key}={item}" for key, item in picked.items()), value))
        return _page("The shop", f"{len(shown)} things", links)

    world.site.routes.exact["/shop"] = reply
    world.traps["facets"] = re.compile(r"/shop\b")
    return "/shop"


def wrong_base(world: World, rng: random.Random) -> str:
    """Links without the slash that they should begin with; the server answers whatever stands before.

    Paths grow for ever.
    """
    help_pages = [(f"help/{_words(rng, 1)}", _words(rng, 2).capitalize(), _sentences(rng, 60)) for _ in range(5)]
    for name, title, text in help_pages:
        _add(
            world,
            f"/{name}",
            title,
            text,
            [*((f"/{other}", words) for other, words, _ in help_pages), (help_pages[0][0], "Help")],
        )

    def reply(asked: Asked) -> Answer:
        title, text = next(
            ((title, text) for name, title, text in help_pages if asked.path.endswith(name)), ("Help", "")
        )
        return _page(title, text, [(name, words) for name, words, _ in help_pages])

    world.site.routes.prefixes["/help/"] = reply
    world.traps["wrong_base"] = re.compile(r"/help/.*/")
    return f"/{help_pages[0][0]}"


def query_session(world: World, rng: random.Random) -> str:
    """?sid=, new on every answer."""
    return _session(world, rng, "/room/", lambda path, key: f"{path}?sid={key}")


def path_session(world: World, rng: random.Random) -> str:
    """;jsessionid= behind the path, new on every answer."""
    return _session(world, rng, "/booking/", lambda path, key: f"{path};jsessionid={key}")


def folder_session(world: World, rng: random.Random) -> str:
    """A folder of the path is the session, new on every answer."""
    return _session(world, rng, "/desk/", lambda path, key: path.replace("/desk/", f"/desk/k{key}/"))


def spelled_session(world: World, rng: random.Random) -> str:
    """?ticket=, new on every answer, and the links are written out as they are: each page differs from all before."""
    return _session(world, rng, "/form/", lambda path, key: f"{path}?ticket={key}", spelled=True)


def search(world: World, rng: random.Random) -> str:
    """Results for any words, cut from a few real pages around them; each suggests further words to add."""
    sources = {f"/essay/{number}": _sentences(rng, 240) for number in range(12)}
    for path, text in sources.items():
        _add(world, path, _words(rng, 3).capitalize(), text, [("/", "Home")])
    whole = {path: text.replace(".", "").split() for path, text in sources.items()}

    def reply(asked: Asked) -> Answer:
        asked_for = asked.parameters.get("q", "").split()
        own = random.Random(asked.target)
        cuts = [(path, words, own.randrange(len(words) - 30)) for path, words in own.sample(sorted(whole.items()), 5)]
        links = [(path, " ".join(words[start : start + 30])) for path, words, start in cuts]
        more = [own.choice(own.choice(list(whole.values()))) for _ in range(5)]
        return _page(
            "Search",
            f"Results for {' '.join(asked_for)}",
            [*links, *((f"/search?q={'+'.join([*asked_for[-2:], word])}", word) for word in more)],
        )

    world.site.routes.exact["/search"] = reply
    world.traps["search"] = re.compile(r"/search\b")
    return "/search?q=river"


def _session(
    world: World, rng: random.Random, folder: str, address: Callable[[str, str], str], *, spelled: bool = False
) -> str:
    own = {f"{folder}{number}.html": (_words(rng, 3).capitalize(), _sentences(rng, 70)) for number in range(14)}

    def reply(asked: Asked) -> Answer:
        path = without_session(asked.target)
        if path not in own:
            return Answer(404, b"<title>Nothing</title><p>There is no such page.")
        key = f"{random.Random(f'{folder}{asked.serial}').getrandbits(64):016x}"
        links = [
            (address(other, key), world.site.host + address(other, key) if spelled else own[other][0]) for other in own
        ]
        return _page(*own[path], links)

    world.site.routes.prefixes[folder] = reply
    world.real |= set(own)
    world.traps[f"session in {folder}"] = re.compile(re.escape(folder))
    return min(own)


def twin_manuals(pages: int = 120) -> World:
    """A reference for two processors: each function has a page in either folder, and the two say the same.

    Nothing is a trap.
    """
    world, rng = World(Site(HOST)), random.Random(7)
    functions = {f"f{number}.html": (_words(rng, 2), _sentences(rng, 40)) for number in range(pages)}
    for processor in ("short", "long"):
        index = [(name, title) for name, (title, _) in functions.items()]
        _add(world, f"/{processor}/index.html", "All functions", "Functions of this processor, by name.", index)
        for name, (title, text) in functions.items():
            _add(world, f"/{processor}/{name}", title, text, [("index.html", "All functions")])
    _add(
        world,
        "/",
        "The manual",
        "For two processors.",
        [("/short/index.html", "Short words"), ("/long/index.html", "Long words")],
    )
    return world


TRAPS: dict[str, Callable[[World, random.Random], str]] = {
    trap.__name__: trap
    for trap in (
        calendar,
        tree,
        facets,
        wrong_base,
        query_session,
        path_session,
        folder_session,
        spelled_session,
        search,
    )
}
"""Each adds itself to a world and returns the path where it begins."""


def _add(world: World, target: str, title: str, text: str, links: Iterable[tuple[str, str]], head: str = "") -> None:
    """A real page that is the same whenever it is asked for."""
    answer = _page(title, text, links, head)
    world.site.routes.exact[target] = lambda asked: answer
    world.real.add(target)


def _page(title: str, text: str, links: Iterable[tuple[str, str]], head: str = "") -> Answer:
    items = "".join(f'<li><a href="{escape(href)}">{escape(words)}</a></li>\n' for href, words in links)
    menu = '<nav><a href="/">The town</a> <a href="/news?page=1">News</a></nav>'
    top = (
        "<!doctype html><html "
        f"lang=en><head><title>{escape(title)}</title>{head}</head><body>{menu}<h1>{escape(title)}</h1>"
    )
    return Answer(body=f"{top}<p>{text}</p><ul>{items}</ul></body></html>".encode())


def _words(rng: random.Random, number: int) -> str:
    return " ".join("".join(rng.choice(_SYLLABLES) for _ in range(rng.choice((2, 2, 3)))) for _ in range(number))


def _sentences(rng: random.Random, words: int) -> str:
    return ". ".join(_words(rng, 12).capitalize() for _ in range(words // 12)) + "."


def _date(text: str) -> datetime.date:
    try:
        return max(datetime.date.fromisoformat(text), datetime.date(2, 1, 1))
    except ValueError:
        return _FIRST_DAY
