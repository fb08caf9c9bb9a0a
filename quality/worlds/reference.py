"""Works of reference: a dictionary and a gazetteer."""

from __future__ import annotations

import datetime
import math

from kit import (
    Answer,
    Frame,
    Link,
    Redirect,
    Request,
    World,
    a,
    distinct,
    esc,
    fields,
    inline,
    new_word,
    pieces,
    place,
    prose,
    query,
    rows,
    seeded,
    sentence,
    slug,
    ul,
)


class Dictionary(World):
    """Entries of one to three lines. Index by letter and by two letters; entries link to neighbours and synonyms.

    Traps: search with related searches, a word of the day for every day back to year 1, log-in pages whose return
    address is nested, print views. With and without traps every page has a sidebar of random words.
    """

    name = "dictionary"

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        chance = seeded("dictionary")
        self.words = sorted(distinct(lambda _: new_word(chance), size))
        self.at = {word: index for index, word in enumerate(self.words)}
        self.groups: dict[str, list[str]] = {}
        for word in self.words:
            self.groups.setdefault(word[:2], []).append(word)
        self.letters = sorted({word[0] for word in self.words})
        menu = [("/", "Dictionary"), ("/about", "About"), ("/abbreviations", "Abbreviations")]
        foot = [("/about", "About"), ("/imprint", "Imprint")] + ([("/login?return=/", "Log in")] if traps else [])
        self.frame = Frame("Wordhoard", tuple(menu), tuple(foot), "Text under a free licence. Edition of 2024.")
        self.real |= {"/about", "/abbreviations", "/imprint", *(f"/letter/{x}" for x in self.letters)}
        self.real |= {f"/entry/{word}" for word in self.words} | {f"/letter/{pair[0]}/{pair}" for pair in self.groups}
        self.route("/", lambda r: self.show(r, "Welcome", ul((f"/letter/{x}", x.upper()) for x in self.letters)))
        self.route("/(about|abbreviations|imprint)", lambda r, x: self.show(r, x.title(), f"<p>{prose(6, x)}</p>"))
        self.route("/letter/([a-z])", self.letter)
        self.route("/letter/[a-z]/([a-z]{2})", self.pair)
        self.route("/entry/([a-z]+)", self.entry)
        if traps:
            self.route("/search", self.search)
            self.route("/login", self.login)
            self.route(r"/wotd/(\d{4})-(\d\d)-(\d\d)", self.word_of_the_day)
            self.route("/random", lambda r: Redirect(f"/entry/{r.chance.choice(self.words)}"))

    def show(self, r: Request, title: str, body: str) -> str:
        side = "<h3>Words at random</h3>" + ul((f"/entry/{w}", w) for w in r.chance.sample(self.words, 5))
        if self.traps:
            extra = [
                ("/wotd/2024-05-06", "Word of the day"),
                ("/random", "Any word"),
                (query("/login", **{"return": r.target}), "Log in"),
            ]
            side += ul(extra)
        return self.frame.page(title, body, side=side)

    def letter(self, r: Request, letter: str) -> Answer:
        pairs = [pair for pair in self.groups if pair[0] == letter]
        links = ((f"/letter/{letter}/{pair}", f"{pair} ({len(self.groups[pair])})") for pair in pairs)
        return self.show(r, letter.upper(), ul(links)) if pairs else None

    def pair(self, r: Request, pair: str) -> Answer:
        return (
            self.show(r, f"{pair}...", ul((f"/entry/{w}", w) for w in self.groups[pair]))
            if pair in self.groups
            else None
        )

    def sense(self, word: str) -> str:
        chance = seeded("sense", word)
        if chance.random() < 0.1:
            other = chance.choice(self.words)
            return f"<p><b>{word}</b>: see {a(f'/entry/{other}', other)}.</p>"
        kind = chance.choice(("noun", "noun", "verb", "adjective", "adverb"))
        senses = "".join(f"<li>{sentence(chance, 3, 9)}</li>" for _ in range(chance.choice((1, 1, 1, 2, 3))))
        also = inline(((f"/entry/{w}", w) for w in chance.sample(self.words, chance.randint(0, 2))), ", ")
        return f"<p><b>{word}</b>, <i>{kind}</i></p><ol>{senses}</ol>" + (f"<p>See also: {also}</p>" if also else "")

    def entry(self, r: Request, word: str) -> Answer:
        if word not in self.at:
            return None
        index = self.at[word]
        near = [self.words[i] for i in (index - 1, index + 1) if 0 <= i < len(self.words)]
        body = self.sense(word) + f"<p>{inline((f'/entry/{w}', w) for w in near)}</p>"
        if self.traps and r.query.get("style") == "print":
            return f"<html><body><h1>{word}</h1>{self.sense(word)}{a(f'/entry/{word}', 'back')}</body></html>"
        if self.traps:
            body += inline(
                [(f"/entry/{word}?style=print", "Print"), (query("/search", q=word), "Search for this word")]
            )
        return self.show(r, word, body)

    def search(self, r: Request) -> Answer:
        asked = r.query.get("q", "")[:200]
        chance = seeded("search", asked)
        hits = "".join(
            f"<div>{a(f'/entry/{w}', w)}: {sentence(seeded('sense', w), 3, 9)}</div>"
            for w in chance.sample(self.words, 8)
        )
        related = ul((query("/search", q=f"{asked} {w}"), f"{asked} {w}") for w in chance.sample(self.words, 5))
        return self.show(
            r,
            f"Search: {asked}",
            f"<p>{chance.randint(10, 900)} entries for {esc(asked)}</p>{hits}<h3>Related searches</h3>{related}",
        )

    def login(self, r: Request) -> Answer:
        form = "<form method=post><input name=user><input name=password type=password><input type=submit></form>"
        return self.show(r, "Log in", f"<p>Log in to keep a list of words.</p>{form}")

    def word_of_the_day(self, r: Request, year: str, month: str, day: str) -> Answer:
        try:
            date = datetime.date(int(year), int(month), int(day))
        except ValueError:
            return None
        word = self.words[date.toordinal() * 7919 % len(self.words)]
        near = [
            (f"/wotd/{date + datetime.timedelta(step)}", name)
            for step, name in ((-1, "the day before"), (1, "the day after"))
        ]
        return self.show(r, f"Word of the day, {date:%d %B} {date.year}", self.sense(word) + f"<p>{inline(near)}</p>")


class Gazetteer(World):
    """Places with numbers: population, height, position, and the eight nearest places. Index by country and region.

    Traps: a map that pans and zooms, distances between any two places, imperial units, and a relative link that a
    server with PATH_INFO answers at any depth.
    """

    name = "gazetteer"

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        chance = seeded("gazetteer", size)
        side = math.isqrt(size - 1) + 1
        self.spot = [
            (40 + index // side * 0.11 + chance.random() / 20, 5 + index % side * 0.13 + chance.random() / 20)
            for index in range(size)
        ]
        self.side = side
        self.names = [place("gazetteer", k).strip() for k in range(size)]
        self.regions = pieces(size, 60)
        menu = (("/", "Gazetteer"), ("/codes", "Codes"), ("/help", "Help"))
        self.frame = Frame(
            "Places of the World", menu, (("/help", "Help"), ("/codes", "Codes")), "Positions in WGS 84.", style=1
        )
        self.real |= {"/codes", "/help"} | {f"/country/{c}/" for c in range(pieces(self.regions, 20))}
        self.real |= {self.region_at(n) for n in range(self.regions)} | {self.at(k) for k in range(size)}
        self.route("/", self.home)
        self.route("/(codes|help)", lambda r, x: self.show(r, x.title(), f"<p>{prose(8, 'gaz', x)}</p>"))
        self.route(r"/country/(\d+)/", self.country)
        self.route(r"/country/\d+/(\d+)\.html", self.region)
        self.route(r"/place/(\d+)/[\w-]+\.html" + ("(/.*)?" if traps else "()"), self.place)
        if traps:
            self.route("/map", self.map)
            self.route("/distance", self.distance)

    def region_at(self, region: int) -> str:
        return f"/country/{region // 20}/{region}.html"

    def at(self, index: int) -> str:
        return f"/place/{2900000 + index * 37}/{slug(self.names[index])}.html"

    def show(self, r: Request, title: str, body: str, *crumbs: Link) -> str:
        latest = "<b>Corrections of the week</b>" + ul(
            (self.at(k), self.names[k]) for k in range(0, min(50, self.size), 10)
        )
        return self.frame.page(title, body, crumbs, latest)

    def home(self, r: Request) -> Answer:
        return self.show(
            r, "Countries", ul((f"/country/{c}/", place("country", c)) for c in range(pieces(self.regions, 20)))
        )

    def country(self, r: Request, country: str) -> Answer:
        regions = range(int(country) * 20, min(int(country) * 20 + 20, self.regions))
        links = ul((self.region_at(n), f"Province of {place('region', n)}") for n in regions)
        return self.show(r, place("country", country), links) if regions else None

    def region(self, r: Request, number: str) -> Answer:
        region = int(number)
        if self.region_at(region) != r.path or region >= self.regions:
            return None
        listed = range(region * 60, min(region * 60 + 60, self.size))
        table = rows(([a(self.at(k), self.names[k]), f"{self.people(k):,}"] for k in listed), ("Place", "Population"))
        return self.show(
            r,
            f"Province of {place('region', region)}",
            table,
            (f"/country/{region // 20}/", place("country", region // 20)),
        )

    def people(self, index: int) -> int:
        return int(math.exp(seeded("people", index).uniform(3, 13)))

    def place(self, r: Request, number: str, below: str | None) -> Answer:
        index, rest = divmod(int(number) - 2900000, 37)
        if rest or not 0 <= index < self.size or not r.path.startswith(self.at(index)):
            return None
        latitude, longitude = self.spot[index]
        chance = seeded("height", index)
        height = (
            (f"{chance.randint(0, 9000):,} ft")
            if r.query.get("units") == "imperial"
            else f"{chance.randint(0, 2700):,} m"
        )
        data = fields(
            [
                ("Population", f"{self.people(index):,}"),
                ("Height", height),
                ("Latitude", f"{latitude:.5f}"),
                ("Longitude", f"{longitude:.5f}"),
                ("Time zone", chance.choice(("UTC", "UTC+1", "UTC+2"))),
            ]
        )
        steps = [row * self.side + column for row in (-1, 0, 1) for column in (-1, 0, 1) if row or column]
        near = [index + step for step in steps if 0 <= index + step < self.size]
        table = rows(
            [a(self.at(k), self.names[k]), f"{math.dist(self.spot[index], self.spot[k]) * 111:.1f} km"] for k in near
        )
        body = f"{data}<h3>Nearby</h3>{table}"
        if self.traps:
            body += inline(
                [
                    (query("/map", lat=round(latitude, 2), lon=round(longitude, 2), z=8), "Map"),
                    ("?units=imperial", "Feet and miles"),
                    (f"{slug(self.names[index])}.html/weather/", "Weather"),
                    *((query("/distance", a=number, b=2900000 + k * 37), f"to {self.names[k]}") for k in near[:3]),
                ]
            )
        return self.show(r, self.names[index], body, (self.region_at(index // 60), "Province"))

    def map(self, r: Request) -> Answer:
        try:
            lat, lon, zoom = float(r.query["lat"]), float(r.query["lon"]), int(r.query["z"])
        except (KeyError, ValueError):
            return None
        step = round(40 / 2**zoom, 4)
        moves = (
            (step, 0, 0, "North"),
            (-step, 0, 0, "South"),
            (0, step, 0, "East"),
            (0, -step, 0, "West"),
            (0, 0, 1, "Closer"),
            (0, 0, -1, "Farther"),
        )
        links = [
            (query("/map", lat=round(lat + x, 4), lon=round(lon + y, 4), z=zoom + z), name)
            for x, y, z, name in moves
            if 0 <= zoom + z <= 18
        ]
        return self.show(
            r,
            f"Map of {lat:.4f}, {lon:.4f}",
            f'<img src="/tile/{zoom}/{lat}/{lon}.png" alt="Map"><p>{inline(links)}</p>',
        )

    def distance(self, r: Request) -> Answer:
        ends = [(int(r.query.get(name, "0")) - 2900000) // 37 for name in "ab"]
        if not all(0 <= end < self.size for end in ends):
            return None
        one, two = ends
        far = math.dist(self.spot[one], self.spot[two]) * 111
        others = r.chance.sample(range(self.size), 4)
        links = ul(
            (query("/distance", a=2900000 + end * 37, b=2900000 + k * 37), f"{self.names[end]} to {self.names[k]}")
            for end in ends
            for k in others
        )
        ways = f"<p>From {a(self.at(one), self.names[one])} to {a(self.at(two), self.names[two])}: {far:.1f} km.</p>"
        return self.show(r, f"Distance {self.names[one]} - {self.names[two]}", ways + links)
