"""Catalogues of numbers: a price list and a bus timetable."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import ClassVar

from kit import (
    Answer,
    Frame,
    Link,
    Request,
    World,
    a,
    distinct,
    inline,
    phrase,
    pieces,
    place,
    prose,
    query,
    rows,
    seeded,
    slug,
    ul,
)


class Prices(World):
    """A catalogue of screws with prices: categories in pages, products of two lines.

    Traps of a shop system: orders, filters that multiply, price ranges, pages of 12, 24 or 48, add-to-cart links,
    variations.
    """

    name = "prices"
    FILTERS: ClassVar = {
        "material": ("steel", "brass", "a2", "a4"),
        "drive": ("hex", "torx", "slot", "cross"),
        "thread": ("m3", "m4", "m5", "m6", "m8", "m10"),
        "finish": ("plain", "zinc", "black"),
    }

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.categories = pieces(size, 120)
        self.frame = Frame(
            "Screws and Nuts",
            (("/", "Shop"), ("/delivery/", "Delivery"), ("/contact/", "Contact")),
            (("/contact/", "Contact"), ("/delivery/", "Delivery and payment")),
            "Prices include tax.",
        )
        self.real |= {"/delivery/", "/contact/"} | {self.at(k) for k in range(size)}
        self.real |= {
            self.list_at(c, n) for c in range(self.categories) for n in range(1, pieces(len(self.listed(c)), 12) + 1)
        }
        self.route(
            "/",
            lambda r: self.show(r, "Shop", ul((self.list_at(c, 1), self.category(c)) for c in range(self.categories))),
        )
        self.route("/(delivery|contact)/", lambda r, x: self.show(r, x.title(), f"<p>{prose(5, 'shop', x)}</p>"))
        self.route(r"/product-category/c(\d+)/(?:page/(\d+)/)?", self.list)
        self.route(r"/product/[\w-]+-(\d+)/", self.product)

    def category(self, number: int) -> str:
        return f"{phrase(1, 'category', number)} screws"

    def listed(self, category: int) -> range:
        return range(category * 120, min(category * 120 + 120, self.size))

    def list_at(self, category: int, page: int) -> str:
        return f"/product-category/c{category}/" + (f"page/{page}/" if page > 1 else "")

    def values(self, index: int) -> dict[str, str]:
        return {name: seeded(name, index).choice(values) for name, values in self.FILTERS.items()}

    def title(self, index: int) -> str:
        own = self.values(index)
        length = seeded("mm", index).randint(6, 120)
        return f"{own['drive'].title()} screw {own['thread'].upper()} x {length}, {own['material']}"

    def at(self, index: int) -> str:
        return f"/product/{slug(self.title(index))}-{40000 + index}/"

    def price(self, index: int) -> int:
        return seeded("price", index).randint(4, 900)

    def show(self, r: Request, title: str, body: str, *crumbs: Link) -> str:
        top = range(0, self.size, max(1, self.size // 4))
        return self.frame.page(
            title, body, crumbs, "<h4>Bestsellers</h4>" + ul((self.at(k), self.title(k)) for k in top)
        )

    def list(self, r: Request, number: str, page: str | None) -> Answer:
        category, asked = int(number), r.query if self.traps else {}
        found = [
            k
            for k in self.listed(category)
            if all(self.values(k)[n] in asked[f"filter_{n}"].split(",") for n in self.FILTERS if f"filter_{n}" in asked)
        ]
        found = [
            k for k in found if int(asked.get("min_price", 0)) <= self.price(k) <= int(asked.get("max_price", 10**6))
        ]
        if "orderby" in asked:
            found.sort(
                key=self.price if asked["orderby"] == "price" else lambda k: seeded(asked["orderby"], k).random()
            )
        each, at = int(asked.get("per_page", 12)), int(page or 1)
        if not self.listed(category) or (at > 1 and at > pieces(len(found), each)):
            return None
        kept = {
            name: value
            for name, value in asked.items()
            if name.startswith(("filter_", "min_", "max_", "orderby", "per_page"))
        }
        items = "".join(
            f"<li>{a(self.at(k), self.title(k))} {self.price(k) / 100:.2f} EUR "
            f"{a(f'?add-to-cart={40000 + k}', 'Add to cart') if self.traps else ''}</li>"
            for k in found[at * each - each : at * each]
        )
        pages = inline(
            (query(self.list_at(category, n), **kept), str(n)) for n in range(1, pieces(len(found), each) + 1)
        )
        body = (
            f"<p>{len(found)} results</p>"
            + (self.facets(category, kept) if self.traps else "")
            + f"<ul>{items}</ul><p>{pages}</p>"
        )
        return self.show(r, self.category(category), body, (self.list_at(category, 1), self.category(category)))

    def facets(self, category: int, kept: dict[str, str]) -> str:
        base, links = self.list_at(category, 1), []
        for name, values in self.FILTERS.items():
            now = kept.get(f"filter_{name}", "").split(",") if f"filter_{name}" in kept else []
            links += [
                (query(base, **kept | {f"filter_{name}": ",".join(sorted({*now} ^ {value}))}), value)
                for value in values
            ]
        links += [
            (query(base, **kept | {"orderby": order}), f"Sort by {order}")
            for order in ("price", "price-desc", "date", "popularity", "rating")
        ]
        links += [(query(base, **kept | {"per_page": each}), f"Show {each}") for each in (12, 24, 48)]
        links += [
            (query(base, **kept | {"min_price": low, "max_price": low + 100}), f"{low} to {low + 100} ct")
            for low in range(0, 900, 300)
        ]
        return ul(links, "widget")

    def product(self, r: Request, number: str) -> Answer:
        index = int(number) - 40000
        if not 0 <= index < self.size or self.at(index) != r.path:
            return None
        own = self.values(index)
        body = f"<p>{self.price(index) / 100:.2f} EUR, 100 pieces {self.price(index) * 0.8:.2f} EUR</p>"
        body += f"<p>SKU {40000 + index}. {seeded('stock', index).randint(0, 4000)} in stock. "
        body += f"Material {own['material']}, finish {own['finish']}.</p>"
        category = index // 120
        related = [k for k in self.listed(category) if k != index][index % 7 :: 29][:4]
        body += "<h3>Related products</h3>" + ul((self.at(k), self.title(k)) for k in related)
        if self.traps:
            body += inline(
                [
                    (f"?attribute_finish={f}&quantity={q}", f"{f}, {q}")
                    for f in self.FILTERS["finish"]
                    for q in (1, 10, 100)
                ]
                + [(f"/product-category/c{category}/?add-to-cart={number}", "Add to cart")]
            )
        return self.show(r, self.title(index), body, (self.list_at(category, 1), self.category(category)))


class Buses(World):
    """Lines, stops, and a page of departures for each stop of a line: numbers nearly alone.

    Traps: departures at a stop later and earlier without end, a journey planner for any two stops and any time.
    """

    name = "buses"

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.lines = [range(start, min(start + 24, size)) for start in range(0, size, 24)]
        self.stops = max(10, size // 3)
        self.names = distinct(
            lambda k: (
                place("stop", k).strip()
                + seeded("s", k).choice((" Station", " Church", " Road", " School", " Bridge", " Market", " Inn"))
            ),
            self.stops,
        )
        self.calls: dict[int, list[int]] = {stop: [] for stop in range(self.stops)}
        for k in range(size):
            self.calls[self.stop_of(k)].append(k)
        self.frame = Frame(
            "County Buses",
            (("/", "Lines"), ("/fares", "Fares"), ("/stops", "Stops")),
            (("/fares", "Fares"),),
            "Valid from 10 December.",
            style=2,
        )
        self.real |= {"/fares", "/stops"} | {f"/line/{n + 1}" for n in range(len(self.lines))}
        self.real |= {self.at(k) for k in range(size)} | {f"/stop/{s}" for s in range(self.stops)}
        self.route(
            "/", lambda r: self.show("Lines", ul((f"/line/{n + 1}", f"Line {n + 1}") for n in range(len(self.lines))))
        )
        self.route(
            "/fares", lambda r: self.show("Fares", rows([f"Zone {z}", f"{1.2 + z * 0.7:.2f}"] for z in range(1, 9)))
        )
        self.route(
            "/stops", lambda r: self.show("Stops", ul((f"/stop/{s}", name) for s, name in enumerate(self.names)))
        )
        self.route(r"/line/(\d+)", self.line)
        self.route(r"/line/(\d+)/stop/(\d+)", self.departures)
        self.route(r"/stop/(\d+)", self.stop)
        if traps:
            self.route("/plan", self.plan)
            self.route("/board", self.board)

    def at(self, index: int) -> str:
        return f"/line/{index // 24 + 1}/stop/{index % 24 + 1}"

    def stop_of(self, index: int) -> int:
        return index * 7919 % self.stops

    def show(self, title: str, body: str) -> str:
        return self.frame.page(title, body)

    def line(self, r: Request, number: str) -> Answer:
        if not 1 <= int(number) <= len(self.lines):
            return None
        calls = self.lines[int(number) - 1]
        ends = " - ".join(self.names[self.stop_of(k)] for k in (calls[0], calls[-1]))
        return self.show(
            f"Line {number}", f"<p>{ends}</p>" + ul((self.at(k), self.names[self.stop_of(k)]) for k in calls)
        )

    def departures(self, r: Request, line: str, call: str) -> Answer:
        index = (int(line) - 1) * 24 + int(call) - 1
        if not 0 <= index < self.size or self.at(index) != r.path:
            return None
        chance = seeded("departures", index)
        hours = rows(
            [
                f"{hour:02}",
                " ".join(f"{minute:02}" for minute in sorted(chance.sample(range(60), chance.randint(1, 4)))),
            ]
            for hour in range(5, 23, chance.choice((1, 2, 3)))
        )
        near = [
            (self.at(k), self.names[self.stop_of(k)])
            for k in (index - 1, index + 1)
            if 0 <= k < self.size and k // 24 == index // 24
        ]
        name = self.names[self.stop_of(index)]
        extra = (
            inline([(query("/board", stop=self.stop_of(index), at="2024-05-06T08:00"), "Departures now")])
            if self.traps
            else ""
        )
        return self.show(
            f"Line {line}, {name}", hours + f"<p>{inline([*near, (f'/stop/{self.stop_of(index)}', name)])}</p>{extra}"
        )

    def stop(self, r: Request, number: str) -> Answer:
        stop = int(number)
        if stop >= self.stops:
            return None
        calls = self.calls[stop]
        links = ul((self.at(k), f"Line {k // 24 + 1}") for k in calls)
        if self.traps:
            links += inline(
                [
                    (query("/board", stop=stop, at="2024-05-06T08:00"), "Departures"),
                    (query("/plan", start=stop, end=(stop + 3) % self.stops, at="2024-05-06T08:00"), "Plan a journey"),
                ]
            )
        return self.show(self.names[stop], f"<p>Stop {number}, zone {stop % 8 + 1}</p>{links}")

    def moment(self, r: Request) -> datetime.datetime | None:
        try:
            return datetime.datetime.fromisoformat(r.query.get("at", ""))
        except ValueError:
            return None

    def board(self, r: Request) -> Answer:
        when, stop = self.moment(r), int(r.query.get("stop", "0"))
        if when is None or stop >= self.stops:
            return None
        times = [when + datetime.timedelta(minutes=7 * step) for step in range(8)]
        table = rows(
            [f"{time:%H:%M}", str(time.minute % 9 + 1), self.names[(stop + time.minute) % self.stops]] for time in times
        )
        near = [
            (query("/board", stop=stop, at=(when + datetime.timedelta(hours=step)).isoformat()[:16]), name)
            for step, name in ((-1, "earlier"), (1, "later"), (24, "tomorrow"))
        ]
        return self.show(f"Departures, {self.names[stop]}, {when:%d.%m.%Y %H:%M}", table + inline(near))

    def plan(self, r: Request) -> Answer:
        when, ends = self.moment(r), [int(r.query.get(name, "0")) for name in ("start", "end")]
        if when is None or max(ends) >= self.stops:
            return None
        names = [self.names[stop] for stop in ends]
        legs = "".join(
            f"<p>{x:%H:%M} {names[0]}, {y:%H:%M} {names[1]}, {seeded(r.target, x).randint(0, 3)} changes</p>"
            for x, y in pairwise(when + datetime.timedelta(minutes=23 * s) for s in range(4))
        )
        links = [
            (query("/plan", start=ends[0], end=ends[1], at=(when + datetime.timedelta(hours=h)).isoformat()[:16]), name)
            for h, name in ((-1, "earlier"), (1, "later"))
        ]
        links += [
            (query("/plan", start=ends[1], end=ends[0], at=when.isoformat()[:16]), "return"),
            (
                query("/plan", start=ends[1], end=(ends[1] * 7 + 1) % self.stops, at=when.isoformat()[:16]),
                "go on from there",
            ),
        ]
        return self.show(f"{names[0]} to {names[1]}", legs + inline(links))
