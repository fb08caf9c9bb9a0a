"""TrapDetector on small synthetic webs: endless series are abandoned and legitimate sites read completely."""

from __future__ import annotations

import datetime
import itertools
import random
import re
from calendar import month_name
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from hashlib import md5
from urllib.parse import parse_qsl, urlsplit

import pytest

from periplus.model.frontier import Candidate, PatternRecord, ShownLines, TrapMemory
from periplus.model.page import Block, BlockKind, Blocks, Charset, Digests, Document, Link, LinkKind, Links, Position
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.schedule.traps import ALIKE, CONFIRMATIONS, TrapDetector
from periplus.urls.canonical import url_id
from periplus.urls.url_patterns import plain

HOST = "https://w.example"
_PARTS = (("ba", "ke", "li", "mo", "nu", "pra", "ste", "tri", "vo", "za"), ("la", "mi", "no", "ru", "se", "ti"))
WORDS = ["".join(parts) for parts in itertools.product(*_PARTS, ("dor", "gan", "lem", "nik", "pol", "ras"))]
MONTHS = list(month_name)[1:]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MENU = "Home\nProducts\nCalendar\nContact\nImprint"
TOKEN = re.compile(r"[?&;](?:sid|jsessionid)=[0-9a-f]+")

Page = tuple[str, list[str]]
Part = Callable[[str], Page | None]


class Web:
    """A site made of parts; the first part that knows a path answers. token: the session parameter that is added
    to each link, with a new value on each visit.
    """

    def __init__(self, *parts: Part, token: str = "", shows_token: bool = False) -> None:
        self.parts, self.token, self.shows_token, self.visits = parts, token, shows_token, 0

    def fetch(self, url: str) -> Page | None:
        self.visits += 1
        path = TOKEN.sub("", url).removeprefix(HOST)
        for part in self.parts:
            page = part(path)
            if page:
                links = [HOST + self._with_token(link) for link in page[1]]
                return page[0] + ("\n" + "\n".join(links) if self.shows_token else ""), links
        return None

    def _with_token(self, link: str) -> str:
        if not self.token or link.endswith(".jpg"):
            return link
        mark = ";" if self.token == "jsessionid" else "&" if "?" in link else "?"
        return f"{link}{mark}{self.token}={random.Random(self.visits).getrandbits(96):024x}"


def document(
    url: str, text: str, links: Collection[str] = (), kind: LinkKind = LinkKind.ANCHOR, media_type: str = "text/html"
) -> Document:
    """A page in the form of `understand`, with the fields that the detector reads."""
    words = text
    for value in {value for link in (url, *links) for value in plain(Url(link)).values}:
        words = words.replace(value, "")
    digest = md5(words.encode(), usedforsecurity=False).digest()
    rows = Links.of(
        Link(Url(link), LinkKind.IMAGE if link.endswith(".jpg") else kind, Position.BODY)
        for link in dict.fromkeys(links)
    )
    return Document(
        media_type,
        Charset("utf-8", "header"),
        "",
        "",
        "",
        Blocks.of(
            Block(BlockKind.PARAGRAPH, line, "", link_chars=len(line) * line.startswith(("More about", HOST)))
            for line in text.split("\n")
            if line
        ),
        rows,
        (),
        Digests(digest, digest, digest),
        False,
        False,
        "",
        0.0,
        0.0,
        "",
    )


@dataclass
class Host:
    """Stored state of a host, and the crawl of a worker: breadth first, refused URLs are offered again at the end."""

    window: int = 10
    queue: deque[str] = field(default_factory=deque)
    refused: list[str] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)
    patterns: dict[str, PatternRecord] = field(default_factory=dict)
    lines: bytearray = field(default_factory=bytearray)
    doubts: dict[int, int] = field(default_factory=dict)
    read: list[tuple[Url, bytes]] = field(default_factory=list)

    @property
    def memory(self) -> TrapMemory:
        return TrapMemory(tuple(self.patterns.values()), ShownLines(0, bytes(self.lines)), tuple(self.doubts.items()))

    def offer(self, candidate: Candidate) -> None:
        if candidate.url_id not in self.known:
            self.known[candidate.url_id] = candidate.url
            self.queue.append(candidate.url)
        elif candidate.vouched:
            self.doubts.pop(candidate.url_id, None)
            if candidate.url in self.refused:
                self.refused.remove(candidate.url)
                self.queue.append(candidate.url)

    def keep(self, detector: TrapDetector) -> None:
        changes = detector.changes()
        self.patterns |= {record.key: record for record in changes.patterns}
        self.lines += changes.lines.keys
        for url, doubt in changes.doubts:
            self.doubts.pop(url, None)
            if doubt:
                self.doubts[url] = doubt


class Past:
    """The queries of a detector to a `Host`."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def texts(self) -> list[tuple[Url, bytes]]:
        return list(self.host.read)

    def stored_urls(self, urls: Collection[int]) -> frozenset[int]:
        return frozenset(url for url in urls if url in self.host.known)


def candidate(url: str) -> Candidate:
    return Candidate(Url(url), url_id(Url(url)), "w.example:443", "w.example", Reason.WAITING, 1)


def crawl(web: Web, window: int = 10, limit: int = 5000, kills: Collection[int] = ()) -> list[str]:
    """The paths read, without tokens.

    kills: numbers of pages after which a new detector continues with the stored state.
    """
    host = Host(window)
    host.offer(candidate(HOST + "/"))
    detector = TrapDetector(window, 1000, host.memory, Past(host))
    seen, read, last = {HOST + "/"}, list[str](), ""
    while len(read) < limit:
        if not host.queue:
            again = (url for url in host.refused if detector.admit(Url(url), doubt_of(host, url), last=True) is None)
            if (last := next(again, "")) == "":
                break
            host.refused.remove(last)
            host.queue.append(last)
        url = host.queue.popleft()
        if url not in (HOST + "/", last) and detector.admit(Url(url), doubt_of(host, url)) is not None:
            host.refused.append(url)
            continue
        page = web.fetch(url)
        if page is None:
            continue
        read.append(TOKEN.sub("", url).removeprefix(HOST))
        understood = document(url, *page)
        new = [link for link in dict.fromkeys(page[1]) if link not in seen and not link.endswith(".jpg")]
        seen.update(new)
        lesson = detector.learn(Url(url), doubt_of(host, url), understood, tuple(map(candidate, new)))
        for one in (*lesson.candidates, *map(candidate, lesson.confirmed_urls)):
            host.offer(one)
        host.keep(detector)
        host.read.append((Url(url), understood.digests.text))
        if len(read) in kills:
            seen, detector = {HOST + "/"}, TrapDetector(window, 1000, host.memory, Past(host))
    return read


def doubt_of(host: Host, url: str) -> int:
    return host.doubts.get(url_id(Url(url)), 0)


def article(seed: int) -> str:
    rng = random.Random(seed)
    return "\n".join([MENU, *(" ".join(rng.choice(WORDS) for _ in range(25)) for _ in range(6))])


def site(articles: int, *entrances: str) -> Part:
    """A home page, ten sections, and articles."""

    def part(path: str) -> Page | None:
        if path == "/":
            return MENU + "\nwelcome to all of this", [*(f"/s/{i}" for i in range(10)), *entrances]
        kind, _, number = path.strip("/").partition("/")
        if kind == "s":
            mine = range(int(number), articles, 10)
            return f"{MENU}\nSection {number}\n" + "\n".join(article(i).split("\n")[6] for i in mine), [
                "/",
                *entrances,
                *(f"/a/{i}" for i in mine),
            ]
        if kind == "a":
            return article(int(number)), ["/", *entrances, f"/a/{(int(number) + 7) % articles}"]
        return None

    return part


def site_pages(articles: int) -> set[str]:
    return {"/", *(f"/s/{i}" for i in range(10)), *(f"/a/{i}" for i in range(articles))}


def query(path: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(path).query))


def calendar(path: str) -> Page | None:
    """An endless calendar in both directions, with parameters."""
    if not path.startswith("/calendar"):
        return None
    asked = query(path)
    year, month = int(asked.get("year", 2026)), int(asked.get("month", 11))
    if "day" in asked:
        today = datetime.date(year, month, int(asked["day"]))
        around = [today + datetime.timedelta(step) for step in (-1, 1)]
        name = f"{DAYS[today.weekday()]}, {today.day} {MONTHS[month - 1]} {year}"
        return f"{MENU}\n{name}\nThere are no events on {name}", [
            *(f"/calendar?view=day&year={day.year}&month={day.month}&day={day.day}" for day in around),
            f"/calendar?year={year}&month={month}",
        ]
    before, after = ((year - (month == 1), (month - 2) % 12 + 1), (year + (month == 12), month % 12 + 1))
    links = [f"/calendar?year={y}&month={m}" for y, m in (before, after, (year - 1, month), (year + 1, month))]
    days = [f"/calendar?view=day&year={year}&month={month}&day={day}" for day in range(1, 29)]
    return f"{MENU}\n{MONTHS[month - 1]} {year}\n" + "\n".join([*DAYS, *map(str, range(1, 29))]), links + days


def path_calendar(path: str) -> Page | None:
    """An endless calendar with paths. A day links only to its month, so days alone are not endless."""
    parts = path.strip("/").split("/")
    if parts[0] != "events":
        return None
    year, month = (int(parts[1]), int(parts[2])) if len(parts) > 2 else (2026, 11)
    if len(parts) > 3:
        return f"{MENU}\nEvents for {parts[3]} {MONTHS[month - 1]} {year}\nNone", [f"/events/{year}/{month}/"]
    around = ((year - (month == 1), (month - 2) % 12 + 1), (year + (month == 12), month % 12 + 1))
    return f"{MENU}\nEvents in {MONTHS[month - 1]} {year}", [
        *(f"/events/{y}/{m}/" for y, m in around),
        *(f"/events/{year}/{month}/{day}/" for day in range(1, 29)),
    ]


def tree(
    root: str, children: Callable[[random.Random], list[str]], text: str = "You are at {path}\n{children}"
) -> Part:
    """Every path below the root has links to deeper paths."""

    def part(path: str) -> Page | None:
        if not path.startswith(root):
            return None
        below = children(random.Random(path))
        said = text.format(
            path=path.strip("/").replace("/", " > "), children="\n".join(f"More about {child}" for child in below)
        )
        return f"{MENU}\n{said}", [f"{path.rstrip('/')}/{child}/" for child in below]

    return part


def invented(rng: random.Random) -> list[str]:
    return ["".join(rng.choice("abcdefghijklmnop") for _ in range(9)) for _ in range(4)]


FACETS = {
    "color": "red blue green black",
    "size": "small medium large",
    "brand": "acme umbrella initech globex",
    "price": "10 20 50",
    "stock": "yes no",
}


def shop(path: str) -> Page | None:
    """60 products with five facets, sorting and paging: more than 1,000 combinations."""
    where, asked = urlsplit(path).path, query(path)
    if where == "/product":
        return article(10_000 + int(asked["id"])), ["/shop", "/"]
    if where != "/shop":
        return None
    number = int(asked.pop("page", "1"))
    fits = [
        i
        for i in range(60)
        if all(
            random.Random(f"{i}{name}").choice(FACETS[name].split()) == value
            for name, value in asked.items()
            if name in FACETS
        )
    ]
    shown = fits[(number - 1) * 20 : number * 20]

    def but(name: str, value: object) -> str:
        return "/shop?" + "&".join(f"{key}={word}" for key, word in sorted({**asked, name: value}.items()))

    links = [f"/product?id={i}" for i in shown]
    links += [but(name, value) for name, values in FACETS.items() for value in values.split()] + [but("sort", "price")]
    if number * 20 < len(fits):
        links.append(but("page", number + 1))
    lines = [f"{WORDS[i]} {WORDS[2 * i]} shirt {i} EUR" for i in shown]
    return "\n".join([MENU, "Shop", " ".join(asked.values()), *lines, *" ".join(FACETS.values()).split()]), links


SHOP_PAGES = {"/shop", "/shop?page=2", "/shop?page=3", *(f"/product?id={i}" for i in range(60))}
LETTER_TREE = tree("/tree/", lambda _: ["a", "b", "c"])
WORD_TREE = tree("/topics/", lambda rng: rng.sample(WORDS, 4))
INVENTED_TREE = tree("/lib/", invented)
ROOT_TREE = tree("/z-", lambda rng: ["z-" + word for word in rng.sample(WORDS, 5)])

TRAPS = {
    "calendar": ((calendar,), ("/calendar",), ""),
    "calendar by paths": ((path_calendar,), ("/events/",), ""),
    "tree of letters": ((LETTER_TREE,), ("/tree/a/",), ""),
    "tree of words": ((WORD_TREE,), ("/topics/all/",), ""),
    "tree of invented words": ((INVENTED_TREE,), ("/lib/all/",), ""),
    "tree from the root": ((ROOT_TREE,), ("/z-all/",), ""),
    "facets": ((shop,), ("/shop",), ""),
    "sessions as parameter": ((), (), "sid"),
    "sessions in the path": ((), (), "jsessionid"),
    "calendar, tree, facets": ((calendar, LETTER_TREE, shop), ("/calendar", "/tree/a/", "/shop"), ""),
    "calendar, tree, facets, sessions": ((calendar, LETTER_TREE, shop), ("/calendar", "/tree/a/", "/shop"), "sid"),
}


@pytest.mark.parametrize(
    ("name", "shows_token"),
    [(name, shows) for name, (*_, token) in TRAPS.items() for shows in {False, bool(token)}],
)
def test_a_trap_beside_300_pages_loses_no_page_and_costs_at_most_ten_windows(name, shows_token):
    parts, entrances, token = TRAPS[name]
    wanted = site_pages(300) | (SHOP_PAGES if shop in parts else set())
    read = crawl(Web(site(300, *entrances), *parts, token=token, shows_token=shows_token))
    assert wanted <= set(read)
    assert len(read) - len(wanted) <= 400 * max(1, len(parts)), len(read)


@pytest.mark.parametrize("name", ["calendar", "calendar by paths", "tree of words", "facets", "calendar, tree, facets"])
def test_a_killed_crawl_reads_the_same_pages_in_the_same_order(name):
    parts, entrances, _ = TRAPS[name]
    whole = crawl(Web(site(120, *entrances), *parts))
    for seed in range(3):
        kills = random.Random(seed).sample(range(len(whole)), 9)
        assert crawl(Web(site(120, *entrances), *parts), kills=kills) == whole


def test_a_larger_window_reads_more_of_a_trap():
    lengths = [len(crawl(Web(site(20, "/calendar"), calendar), window=window)) for window in (5, 40, 80)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[2]


def archive(path: str) -> Page | None:
    """Years and months with links only. The months lead to stories."""
    parts = path.strip("/").split("/")
    if parts[0] == "stories":
        return article(20_000 + int(parts[1])), ["/"]
    if parts[0] != "archive":
        return None
    if len(parts) == 1:
        return MENU + "\nArchive", [f"/archive/{year}" for year in range(2010, 2022)]
    if len(parts) == 2:
        return f"{MENU}\nArchive {parts[1]}\n" + "\n".join(MONTHS), [f"{path}/{month}" for month in range(1, 13)]
    return f"{MENU}\n{MONTHS[int(parts[2]) - 1]} {parts[1]}", [f"/stories/{int(parts[1]) * 12 + int(parts[2])}"]


ARCHIVE_PAGES = {
    "/archive",
    *(f"/archive/{y}" for y in range(2010, 2022)),
    *(f"/archive/{y}/{m}" for y in range(2010, 2022) for m in range(1, 13)),
}


def news(path: str) -> Page | None:
    """Pages of a list without teasers, each with links to new items and the next page."""
    if path.startswith("/item"):
        return article(30_000 + int(query(path)["id"])), ["/news"]
    if not path.startswith("/news"):
        return None
    number = int(query(path).get("page", 1))
    return f"{MENU}\nPage {number}", [f"/item?id={2 * number}", f"/item?id={2 * number + 1}"] + (
        [f"/news?page={number + 1}"] if number < 60 else []
    )


def gallery(path: str) -> Page | None:
    """Pages with an image, a number, and links to neighbours."""
    if not path.startswith("/photo/"):
        return None
    number = int(path.removeprefix("/photo/"))
    return f"Photo {number} of 150", [
        f"/photo/{max(1, number - 1)}",
        f"/photo/{min(150, number + 1)}",
        f"/img/{number}.jpg",
    ]


def stubs(path: str) -> Page | None:
    """An index, and pages with only their name."""
    names = [f"{first}_{second}" for first, second in itertools.pairwise(WORDS[:151])]
    if path == "/api/":
        return "\n".join(names), [f"/api/{name}.html" for name in names]
    return (f"{MENU}\n{path[5:-5]}\nNot documented yet.", ["/api/"]) if path.startswith("/api/") else None


def dispatch(path: str) -> Page | None:
    """An endless calendar, chapters with links only, and articles, all under the same path."""
    if not path.startswith("/index.php"):
        return None
    asked = query(path)
    if "article" in asked:
        return article(40_000 + int(asked["article"])), ["/index.php"]
    if "chapter" in asked:
        return f"{MENU}\nChapter {asked['chapter']}", [
            f"/index.php?article={10 * int(asked['chapter']) + i}" for i in range(10)
        ]
    if "month" in asked:
        year, month = int(asked["year"]), int(asked["month"])
        return f"{MENU}\n{MONTHS[month - 1]} {year}", [
            (f"/index.php?month={month % 12 + 1}&year={year + (month == 12)}")
        ]
    return MENU, ["/index.php?month=1&year=2026", *(f"/index.php?chapter={i}" for i in range(10))]


LEGITIMATE = {
    "archive of bare lists": (
        archive,
        "/archive",
        ARCHIVE_PAGES | {f"/stories/{y * 12 + m}" for y in range(2010, 2022) for m in range(1, 13)},
    ),
    "numbered pages": (
        news,
        "/news",
        {"/news", *(f"/news?page={i}" for i in range(2, 61)), *(f"/item?id={i}" for i in range(2, 122))},
    ),
    "photographs": (gallery, "/photo/1", {f"/photo/{i}" for i in range(1, 151)}),
    "stubs": (stubs, "/api/", {"/api/", *(f"/api/{a}_{b}.html" for a, b in itertools.pairwise(WORDS[:151]))}),
    "one path for all": (
        dispatch,
        "/index.php",
        {*(f"/index.php?chapter={i}" for i in range(10)), *(f"/index.php?article={i}" for i in range(100))},
    ),
}


@pytest.mark.parametrize("articles", [5, 200])
@pytest.mark.parametrize("beside", [(), (calendar, LETTER_TREE, shop)], ids=["alone", "beside traps"])
@pytest.mark.parametrize("name", LEGITIMATE)
def test_no_page_of_a_legitimate_site_is_lost(name, beside, articles):
    part, entrance, wanted = LEGITIMATE[name]
    entrances = (entrance, *(("/calendar", "/tree/a/", "/shop") if beside else ()))
    read = set(crawl(Web(site(articles, *entrances), part, *beside)))
    assert wanted | site_pages(articles) | (SHOP_PAGES if beside else set()) <= read


def detector(window: int = 10, most: int = 1000) -> TrapDetector:
    return TrapDetector(window, most, TrapMemory(), Past(Host()))


def month(number: int) -> tuple[Url, int, Document, tuple[Candidate, ...]]:
    """A doubtful page without new content and with a link to the next month."""
    url, following = f"{HOST}/cal?month={number}", f"{HOST}/cal?month={number + 1}"
    return Url(url), 1, document(url, f"January\n{number % 31}"), (candidate(following),)


def admitted(watch: TrapDetector, url: str, doubt: int = 1, *, last: bool = False) -> bool:
    return watch.admit(Url(HOST + url), doubt, last=last) is None


def test_a_refusal_names_the_pattern_and_the_pages_read():
    watch = detector(window=5)
    for number in range(1, 6):
        assert admitted(watch, f"/cal?month={number}")
        watch.learn(*month(number))
    assert watch.admit(Url(HOST + "/cal?month=7"), 1) == "/cal?month=*: 5 pages in a row had nothing new"
    assert admitted(watch, "/elsewhere")
    assert admitted(watch, "/cal?month=7", doubt=0)  # a page with content links to it


def test_a_long_list_is_no_endless_series():
    """All months are listed on one page, and none links to a further month."""
    watch = detector(window=5)
    for number in range(1, 400):
        assert admitted(watch, f"/cal?month={number}"), number
        watch.learn(*month(number)[:3], ())


def test_links_to_feeds_translations_and_neighbours_do_not_make_a_series_endless():
    watch = detector(window=5)
    for number in range(1, 40):
        url, following = f"{HOST}/cal/{number}", f"{HOST}/cal/{number + 1}"
        watch.learn(
            Url(url), 1, document(url, f"{number % 31}", [following], LinkKind.ALTERNATE), (candidate(following),)
        )
    assert admitted(watch, "/cal/41")


def test_short_lines_and_numbers_are_content():
    watch = detector()
    for number, text in enumerate(("Name\nOak", "Name\nElm", "Name\nAsh tree")):
        assert watch.learn(Url(f"{HOST}/tree/{number}"), 1, document(HOST, text), ()).fresh
    assert not watch.learn(Url(HOST + "/tree/9"), 1, document(HOST, "Name\nElm"), ()).fresh


def test_words_of_the_url_and_a_calendar_grid_are_no_content():
    watch = detector()
    watch.learn(Url(HOST + "/"), 0, document(HOST, "No events on\nEvents"), ())
    watch.learn(Url(HOST + "/"), 0, document(HOST, "No events on\nEvents"), ())
    for url, text in {
        "/events/plum/jam": "Plum\nJam plum",
        "/cal/2031/5": "No events on Friday, 9 May 2031",
        "/cal/2031/6": "Monday\nTuesday\n1\n2\n30\n31\nJune 2031",
    }.items():
        assert not watch.learn(Url(HOST + url), 1, document(HOST, text), ()).fresh, text


def test_link_texts_are_no_content():
    watch, url = detector(), Url(HOST + "/list")
    rows = [Block(BlockKind.PARAGRAPH, words, "", link_chars=len(words)) for words in ("Elm", "Oak")]
    page = replace(document(url, ""), blocks=Blocks.of(rows))
    assert not watch.learn(url, 1, page, ()).fresh
    assert watch.learn(url, 1, document(url, "Elm"), ()).fresh


def test_an_excerpt_of_a_known_text_is_no_content():
    watch, words = detector(), article(1).split("\n")[6].split()
    watch.learn(Url(HOST + "/doc"), 0, document(HOST, " ".join(words)), ())
    snippet = "Title of it " + " ".join(words[5:20])
    assert not watch.learn(Url(HOST + "/search?q=x"), 1, document(HOST, snippet), ()).fresh


def test_a_line_with_one_number_is_a_counter_and_with_two_it_is_content():
    watch = detector()
    watch.learn(Url(HOST + "/"), 0, document(HOST, "About 7,312 results\nLeaves at 13:49, arrives at 18:07"), ())
    assert not watch.learn(Url(HOST + "/x"), 1, document(HOST, "About 8,121 results"), ()).fresh
    assert watch.learn(Url(HOST + "/y"), 1, document(HOST, "Leaves at 13:51, arrives at 19:02"), ()).fresh


def timetable(trains: int) -> Part:
    """Pages with numbers only, each with a link to the next."""

    def part(path: str) -> Page | None:
        if path == "/":
            return "Trains", ["/train/0"]
        number = int(path.removeprefix("/train/"))
        chance = random.Random(number)
        text = f"Train {number}\nLeaves at {chance.randrange(24)}:{chance.randrange(10, 60)} from platform"
        return f"{text} {chance.randrange(200, 900)}", [f"/train/{(number + 1) % trains}"]

    return part


def test_a_finite_chain_of_numbers_is_read_completely():
    assert len(set(crawl(Web(timetable(200))))) == 201


def test_an_endless_chain_of_numbers_is_read_up_to_max_doubtful():
    """`crawl` sets it to 1000."""
    assert 1000 <= len(crawl(Web(timetable(10**9)))) <= 1020


def test_a_page_with_content_vouches_for_its_links_and_reopens_their_series():
    watch = detector(window=2)
    for number in range(1, 4):
        watch.learn(*month(number))
    assert not admitted(watch, "/cal?month=9")
    url = Url(HOST + "/cal?month=8")
    lesson = watch.learn(url, 1, document(url, article(1)), (candidate(HOST + "/b"), candidate(HOST + "/cal?month=9")))
    assert lesson.fresh
    assert [target.vouched for target in lesson.candidates] == [True, False]  # it does not vouch for variants of itself
    assert admitted(watch, "/cal?month=9")


def test_a_page_that_redirects_to_content_gets_the_credit():
    watch = detector(window=5)
    for number, page in ((number, f"{HOST}/news/{number}") for number in range(8)):
        watch.record_redirect(Url(f"{HOST}/go?n={number}"), 1, (candidate(page), month(number)[3][0]))
        watch.learn(Url(page), 1, document(HOST, article(number)), ())
    assert admitted(watch, "/go?n=99")


@pytest.mark.parametrize("doubt", [0, 1])
def test_the_same_text_at_many_urls_of_a_script_closes_the_script(doubt):
    watch, url = detector(window=5), HOST + "/reply.php?quote="
    read = 0
    while admitted(watch, f"/reply.php?quote={read}", doubt) and read < 100:
        watch.learn(Url(f"{url}{read}"), doubt, document(url, "You must log in."), ())
        read += 1
    assert read == 1 + 5 * ALIKE


def test_redirects_to_the_same_text_close_their_script():
    watch, read = detector(window=5), 0
    while admitted(watch, f"/out/{read}", 0) and read < 100:
        watch.record_redirect(Url(f"{HOST}/out/{read}"), 0, (candidate(f"{HOST}/land/{read}"),))
        read += 1
    assert read == 5 * ALIKE


def test_a_wide_pattern_does_not_close_a_narrow_one_with_content():
    watch = detector(window=4)
    for number in range(4):
        url = Url(f"{HOST}/c/1?item={number}")
        watch.learn(url, 1, document(url, article(number)), ())
    for number in range(40):
        url = Url(f"{HOST}/c/1?color={number}&{'xy'[number % 2]}=1")
        watch.learn(url, 1, document(url, ""), (candidate(f"{url}&z=1"),))
    assert not admitted(watch, "/c/1?size=1")
    assert admitted(watch, "/c/1?item=9")
    assert admitted(watch, "/c/1?page=2")  # lists are a pattern of their own


def test_a_sample_of_a_doubtful_series_is_requested_last():
    watch = detector(window=10)
    for number in range(10):
        watch.learn(*month(number))
    read = 10
    while admitted(watch, f"/cal?month={read}", last=True):
        assert not admitted(watch, f"/cal?month={read}")
        watch.learn(*month(read))
        read += 1
    assert read == 12
    assert not detector(most=0).admit(Url(HOST + "/cal?month=1"), 1, last=True)


def test_a_page_with_content_clears_the_doubt_of_its_links():
    watch, target = detector(), Url(HOST + "/b/x")
    lesson = watch.learn(Url(HOST + "/a"), 0, document(HOST, ""), (candidate(target),))
    assert [target.vouched for target in lesson.candidates] == [False]
    url = Url(HOST + "/c")
    assert watch.learn(url, 0, document(url, article(1), [target]), ()).confirmed_urls == (target,)


def test_a_feed_vouches_for_its_items():
    watch, item = detector(), HOST + "/cal?month=5"
    url = HOST + "/feed.xml"
    lesson = watch.learn(
        Url(url), 0, document(url, "", [item], LinkKind.RELATED, "application/rss+xml"), (candidate(item),)
    )
    assert [target.vouched for target in lesson.candidates] == [True]


def test_changes_are_returned_once():
    watch = detector()
    watch.learn(Url(HOST + "/wiki/One"), 1, document(HOST + "/wiki/One", article(1)), ())
    changes = watch.changes()
    assert [record.key for record in changes.patterns] == ["/**", "/wiki/*", "/wiki/**"]
    assert changes.lines.keys
    assert not watch.changes()


def test_window_0_refuses_nothing():
    read = crawl(Web(site(5, "/tree/a/"), LETTER_TREE), window=0, limit=200)
    assert len(read) == 200


def test_each_wider_pattern_has_a_larger_window():
    watch = detector(window=3)
    for number in range(9):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        url, child = f"{HOST}/tree/{name}/x", f"{HOST}/tree/{name}/x/y"
        assert admitted(watch, f"/tree/{name}/x"), number
        watch.learn(Url(url), 1, document(url, ""), (candidate(child),))
    assert watch.admit(Url(HOST + "/tree/quite/another"), 1) == "/tree/**: 9 pages in a row had nothing new"


def test_a_session_parameter_is_confirmed_by_three_equal_texts():
    watch = detector()
    tokens = [f"{number}23456789ab{number}" for number in range(6)]
    for token in tokens[: CONFIRMATIONS + 1]:
        url = f"{HOST}/a?PHPSESSID={token}"
        assert watch.admit(Url(url), 0) is None
        watch.learn(Url(url), 0, document(url, article(1)), ())
    assert "under another phpsessid" in (watch.admit(Url(f"{HOST}/a?PHPSESSID={tokens[5]}"), 0) or "")
    assert watch.admit(Url(f"{HOST}/b?PHPSESSID={tokens[5]}"), 0) is None


def test_a_token_that_identifies_documents_is_never_a_session_parameter():
    watch = detector()
    for number in range(30):
        url = f"{HOST}/doc?key={random.Random(number).getrandbits(128):032x}"
        assert watch.admit(Url(url), 0) is None
        watch.learn(Url(url), 0, document(url, article(number)), ())
