"""TrapWatch on webs made of a few lines each: endless ones are left, legitimate ones are fetched whole."""

from __future__ import annotations

import datetime
import itertools
import random
import re
from collections import deque
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest

from periplus.model.web import Url
from periplus.schedule.traps import COLD_PAGES, TrapWatch

HOST = "https://w.example"
WORDS = [
    a + b + c
    for a, b, c in itertools.product(
        ["ba", "ke", "li", "mo", "nu", "pra", "ste", "tri", "vo", "za"], ["la", "mi", "no", "ru", "se", "ti"], ["dor", "gan", "lem", "nik", "pol", "ras"]
    )
]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MENU = "Home\nProducts\nCalendar\nContact\nImprint"
TOKEN = re.compile(r"[?&;](?:sid|jsessionid)=[0-9a-f]+")

Page = tuple[str, list[str]]
Part = Callable[[str], Page | None]


class Web:
    """Parts of a site, asked in turn; token: with which a session's token follows each link, another one on each visit."""

    def __init__(self, *parts: Part, token: str = "") -> None:
        self.parts, self.token, self.visits = parts, token, 0

    def fetch(self, url: str) -> Page | None:
        self.visits += 1
        path = TOKEN.sub("", url).removeprefix(HOST)
        for part in self.parts:
            page = part(path)
            if page:
                return page[0], [HOST + self._with_token(link) for link in page[1]]
        return None

    def _with_token(self, link: str) -> str:
        if not self.token:
            return link
        mark = ";" if self.token == "jsessionid" else "&" if "?" in link else "?"
        return f"{link}{mark}{self.token}={random.Random(self.visits).getrandbits(96):024x}"


def crawl(web: Web, watch: TrapWatch, limit: int = 3000, turn: Callable[[TrapWatch, int], TrapWatch] = lambda watch, _: watch) -> list[str]:
    """Breadth first; those refused are asked about again when nothing else is left. The URLs fetched, tokens and host taken off."""
    queue, refused = deque([HOST + "/"]), deque[str]()
    seen, fetched = {HOST + "/"}, list[str]()
    while len(fetched) < limit:
        if not queue:
            again = next((url for url in refused if watch.admit(Url(url)) is None), None)
            if again is None:
                break
            refused.remove(again)
            queue.append(again)
        url = queue.popleft()
        if watch.admit(Url(url)) is not None:
            refused.append(url)
            continue
        page = web.fetch(url)
        if page is None:
            continue
        fetched.append(TOKEN.sub("", url).removeprefix(HOST))
        watch = turn(watch, len(fetched))
        new = [link for link in dict.fromkeys(page[1]) if link not in seen]
        seen.update(new)
        queue.extend(link for link in new if not link.endswith(".jpg"))
        watch.learn(Url(url), page[0], [Url(link) for link in new])
    return fetched


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
            return f"{MENU}\nSection {number}\n" + "\n".join(article(i).split("\n")[6] for i in mine), ["/", *entrances, *(f"/a/{i}" for i in mine)]
        if kind == "a":
            return article(int(number)), ["/", *entrances, f"/a/{(int(number) + 7) % articles}"]
        return None

    return part


def site_pages(articles: int) -> set[str]:
    return {"/", *(f"/s/{i}" for i in range(10)), *(f"/a/{i}" for i in range(articles))}


def query(path: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(path).query))


def calendar(path: str) -> Page | None:
    """Months and days for ever, both ways, by parameters."""
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
    """The same by paths; a day knows its month only, so that it never breeds."""
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


def tree(root: str, children: Callable[[random.Random], list[str]], text: str = "You are at {path}\n{children}") -> Part:
    """Any path under the root answers with links to paths below it."""

    def part(path: str) -> Page | None:
        if not path.startswith(root):
            return None
        below = children(random.Random(path))
        said = text.format(path=path.strip("/").replace("/", " > "), children="\n".join(f"More about {child}" for child in below))
        return f"{MENU}\n{said}", [f"{path.rstrip('/')}/{child}/" for child in below]

    return part


def invented(rng: random.Random) -> list[str]:
    return ["".join(rng.choice("abcdefghijklmnop") for _ in range(9)) for _ in range(4)]


FACETS = {"color": "red blue green black", "size": "small medium large", "brand": "acme umbrella initech globex", "price": "10 20 50", "stock": "yes no"}


def shop(path: str) -> Page | None:
    """60 products behind five facets, an order and pages: more than 1,000 combinations."""
    where, asked = urlsplit(path).path, query(path)
    if where == "/product":
        return article(10_000 + int(asked["id"])), ["/shop", "/"]
    if where != "/shop":
        return None
    number = int(asked.pop("page", "1"))
    fits = [i for i in range(60) if all(random.Random(f"{i}{name}").choice(FACETS[name].split()) == value for name, value in asked.items() if name in FACETS)]
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


@pytest.mark.parametrize("name", TRAPS)
def test_ours_of_300_pages_and_a_trap_all_pages_and_95_percent_pages(name):
    parts, entrances, token = TRAPS[name]
    wanted = site_pages(300) | (SHOP_PAGES if shop in parts else set())
    fetched = crawl(Web(site(300, *entrances), *parts, token=token), TrapWatch(40))
    assert wanted <= set(fetched)
    assert len(wanted) / len(fetched) >= 0.95


def test_ours_on_a_small_site_a_trap_costs_at_most_twelve_pages():
    for name in ("calendar", "calendar by paths", "tree of letters", "tree of words", "tree from the root"):
        parts, entrances, token = TRAPS[name]
        fetched = crawl(Web(site(20, *entrances), *parts, token=token), TrapWatch(40))
        assert site_pages(20) <= set(fetched)
        assert len(fetched) - len(site_pages(20)) <= 12, name


def archive(path: str) -> Page | None:
    """Years and months with nothing but links; the months lead to stories."""
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


ARCHIVE_PAGES = {"/archive", *(f"/archive/{y}" for y in range(2010, 2022)), *(f"/archive/{y}/{m}" for y in range(2010, 2022) for m in range(1, 13))}


def news(path: str) -> Page | None:
    """Pages of a list without teasers, each leading to new items and the next page."""
    if path.startswith("/item"):
        return article(30_000 + int(query(path)["id"])), ["/news"]
    if not path.startswith("/news"):
        return None
    number = int(query(path).get("page", 1))
    return f"{MENU}\nPage {number}", [f"/item?id={2 * number}", f"/item?id={2 * number + 1}"] + ([f"/news?page={number + 1}"] if number < 60 else [])


def gallery(path: str) -> Page | None:
    """Pages with a picture, a number, and the neighbours."""
    if not path.startswith("/photo/"):
        return None
    number = int(path.removeprefix("/photo/"))
    return f"Photo {number} of 150", [f"/photo/{max(1, number - 1)}", f"/photo/{min(150, number + 1)}", f"/img/{number}.jpg"]


def stubs(path: str) -> Page | None:
    """An index and pages that say only their name."""
    names = [f"{first}_{second}" for first, second in itertools.pairwise(WORDS[:151])]
    if path == "/api/":
        return "\n".join(names), [f"/api/{name}.html" for name in names]
    return (f"{MENU}\n{path[5:-5]}\nNot documented yet.", ["/api/"]) if path.startswith("/api/") else None


def dispatch(path: str) -> Page | None:
    """All on one path: an endless calendar, chapters with nothing but links, articles."""
    if not path.startswith("/index.php"):
        return None
    asked = query(path)
    if "article" in asked:
        return article(40_000 + int(asked["article"])), ["/index.php"]
    if "chapter" in asked:
        return f"{MENU}\nChapter {asked['chapter']}", [f"/index.php?article={10 * int(asked['chapter']) + i}" for i in range(10)]
    if "month" in asked:
        year, month = int(asked["year"]), int(asked["month"])
        return f"{MENU}\n{MONTHS[month - 1]} {year}", [f"/index.php?month={month % 12 + 1}&year={year + (month == 12)}"]
    return MENU, ["/index.php?month=1&year=2026", *(f"/index.php?chapter={i}" for i in range(10))]


LEGITIMATE = {
    "archive of bare lists": (archive, "/archive", ARCHIVE_PAGES | {f"/stories/{y * 12 + m}" for y in range(2010, 2022) for m in range(1, 13)}),
    "numbered pages": (news, "/news", {"/news", *(f"/news?page={i}" for i in range(2, 61)), *(f"/item?id={i}" for i in range(2, 122))}),
    "photographs": (gallery, "/photo/1", {f"/photo/{i}" for i in range(1, 151)}),
    "stubs": (stubs, "/api/", {"/api/", *(f"/api/{a}_{b}.html" for a, b in itertools.pairwise(WORDS[:151]))}),
    "one path for all": (dispatch, "/index.php", {*(f"/index.php?chapter={i}" for i in range(10)), *(f"/index.php?article={i}" for i in range(100))}),
}


@pytest.mark.parametrize("articles", [5, 200])
@pytest.mark.parametrize("beside", [(), (calendar, LETTER_TREE, shop)], ids=["alone", "beside traps"])
@pytest.mark.parametrize("name", LEGITIMATE)
def test_ours_no_page_of_a_legitimate_site_is_lost(name, beside, articles):
    part, entrance, wanted = LEGITIMATE[name]
    entrances = (entrance, *(("/calendar", "/tree/a/", "/shop") if beside else ()))
    fetched = set(crawl(Web(site(articles, *entrances), part, *beside), TrapWatch(40)))
    assert wanted | site_pages(articles) | (SHOP_PAGES if beside else set()) <= fetched


def test_ours_what_was_learned_outlives_the_watch():
    """Each 50 pages another worker takes the host over, with the records alone."""
    known: dict[str, object] = {}

    def turn(watch: TrapWatch, pages: int) -> TrapWatch:
        known.update((record.key, record) for record in watch.records())
        return TrapWatch(40, known.values()) if pages % 50 == 0 else watch  # type: ignore[arg-type]

    parts, entrances, token = TRAPS["calendar, tree, facets"]
    fetched = crawl(Web(site(400, *entrances), *parts, token=token), TrapWatch(40), turn=turn)
    wanted = site_pages(400) | SHOP_PAGES
    assert wanted <= set(fetched)
    assert len(wanted) / len(fetched) >= 0.9


def test_records_tell_only_what_changed():
    watch = TrapWatch(40)
    watch.learn(Url(HOST + "/wiki/One"), article(1), [])
    assert [record.key for record in watch.records()] == ["/**", "/wiki/**"]
    assert watch.records() == []


def test_a_refusal_says_which_family_and_why():
    watch = TrapWatch(40)
    for month in range(1, 7):
        watch.learn(Url(f"{HOST}/cal?month={month}"), MENU, [Url(f"{HOST}/cal?month={month + 1}")])
    assert watch.admit(Url(HOST + "/cal?month=7")) == "/cal?month=*: 5 of 6 pages brought nothing new"
    assert watch.admit(Url(HOST + "/elsewhere")) is None


def test_window_0_refuses_nothing():
    fetched = crawl(Web(site(5, "/tree/a/"), LETTER_TREE), TrapWatch(0), limit=200)
    assert len(fetched) == 200


def test_ours_session_names_are_believed_after_three_equal_texts():
    watch = TrapWatch(40)
    tokens = ["0123456789ab", "123456789abc", "23456789abcd", "3456789abcde", "456789abcdef"]
    for token in tokens[:3]:
        assert watch.admit(Url(f"{HOST}/a?PHPSESSID={token}")) is None
        watch.learn(Url(f"{HOST}/a?PHPSESSID={token}"), article(1), [])
    assert watch.admit(Url(f"{HOST}/a?PHPSESSID={tokens[3]}")) is None
    watch.learn(Url(f"{HOST}/a?PHPSESSID={tokens[3]}"), article(1), [])
    assert "under another phpsessid" in (watch.admit(Url(f"{HOST}/a?PHPSESSID={tokens[4]}")) or "")
    assert watch.admit(Url(f"{HOST}/b?PHPSESSID={tokens[4]}")) is None
    assert watch.page_of(Url(f"{HOST}/b?PHPSESSID={tokens[4]}")) == f"{HOST}/b"


def test_ours_a_token_that_names_documents_is_never_believed():
    watch = TrapWatch(40)
    for number in range(30):
        url = Url(f"{HOST}/doc?key={random.Random(number).getrandbits(128):032x}")
        assert watch.admit(url) is None
        watch.learn(url, article(number), [])
    assert watch.page_of(Url(f"{HOST}/doc?key=0123456789abcdef0123456789abcdef")).endswith("cdef")


def test_cold_pages_clear_no_debt():
    watch = TrapWatch(40)
    for month in range(1, 5):
        watch.learn(Url(f"{HOST}/cal?month={month}"), MENU, [Url(f"{HOST}/cal?month={month + 1}")])
    resumed = TrapWatch(40, watch.records())
    assert COLD_PAGES > 1
    resumed.learn(Url(f"{HOST}/cal?month=5"), MENU, [Url(f"{HOST}/cal?month=6")])
    debts = {record.key: record.debt for record in resumed.records()}
    assert debts["/cal?month=*"] == 3
