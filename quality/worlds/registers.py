"""Registers of numbered records: ships and exam results."""

from __future__ import annotations

import re
from typing import ClassVar

from kit import (
    Answer,
    Frame,
    Link,
    Redirect,
    Request,
    World,
    a,
    fields,
    inline,
    new_word,
    pieces,
    place,
    prose,
    query,
    rows,
    seeded,
    ul,
)


class Ships(World):
    """Ships by IMO number, with lists by flag and type, and links to the ship before and after.

    Traps: orders of the lists, comparison of any set of ships, tabs of a ship that show the same page, and offers
    that lead through a redirect with a new token to one landing page.
    """

    name = "ships"
    FLAGS: ClassVar = [
        "Panama",
        "Liberia",
        "Malta",
        "Greece",
        "Norway",
        "Japan",
        "Cyprus",
        "Denmark",
        "Italy",
        "India",
        "Chile",
        "Ireland",
    ]
    TYPES = ("Bulk carrier", "Tanker", "Container ship", "Ferry", "Tug", "Trawler", "Cruise ship", "Reefer")

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.by_flag: dict[str, list[int]] = {}
        for k in range(size):
            self.by_flag.setdefault(seeded("flag", k).choice(self.FLAGS), []).append(k)
        self.frame = Frame(
            "Register of Ships",
            (("/", "Flags"), ("/types", "Types"), ("/terms", "Terms")),
            (("/terms", "Terms of use"),),
            "Data without warranty.",
            style=2,
        )
        self.real |= {"/types", "/terms"} | {self.at(k) for k in range(size)}
        self.real |= {
            query(f"/flag/{f}", page=n if n > 1 else "")
            for f, ships in self.by_flag.items()
            for n in range(1, pieces(len(ships), 50) + 1)
        }
        self.route(
            "/", lambda r: self.show(r, "Flags", ul((f"/flag/{f}", f"{f} ({len(s)})") for f, s in self.by_flag.items()))
        )
        self.route("/types", lambda r: self.show(r, "Types", "".join(f"<p>{t}: {prose(2, t)}</p>" for t in self.TYPES)))
        self.route("/terms", lambda r: self.show(r, "Terms", f"<p>{prose(12, 'terms')}</p>"))
        self.route(r"/flag/(\w+)", self.flag)
        self.route(r"/ship/(\d{7})", self.ship)
        if traps:
            self.route("/compare", self.compare)
            self.route(r"/out/[0-9a-f]+", lambda r: Redirect(f"/partner?click={r.chance.getrandbits(32):x}"))
            self.route("/partner", lambda r: self.show(r, "Our partner", f"<p>{prose(3, 'partner')}</p>"))

    def at(self, index: int) -> str:
        return f"/ship/{9100000 + index * 13}"

    def title(self, index: int) -> str:
        chance = seeded("ship", index)
        before, after = (
            chance.choice(("", "", "MSC ", "Nordic ", "Star of ")),
            chance.choice(("", "", " II", " Express")),
        )
        return f"{before}{new_word(chance).title()}{after}"

    def show(self, r: Request, title: str, body: str, *crumbs: Link) -> str:
        side = (
            "<p>Advertisement</p>" + ul((f"/out/{r.chance.getrandbits(48):x}", "Ship insurance") for _ in range(3))
            if self.traps
            else ""
        )
        return self.frame.page(title, body, crumbs, side)

    def flag(self, r: Request, flag: str) -> Answer:
        ships, number, order = (
            list(self.by_flag.get(flag, ())),
            int(r.query.get("page", 1)),
            r.query.get("sort", "") if self.traps else "",
        )
        if not ships or not 1 <= number <= pieces(len(ships), 50):
            return None
        if order:
            ships.sort(key=lambda k: seeded(order, k).random(), reverse=r.query.get("dir") == "desc")
        table = rows(
            [
                [a(self.at(k), self.title(k)), str(9100000 + k * 13), self.data(k)[2][1]]
                for k in ships[number * 50 - 50 : number * 50]
            ],
            ("Name", "IMO", "Built"),
        )
        turn = {"sort": order, "dir": r.query.get("dir", "") if order else ""}
        pages = inline(
            (query(f"/flag/{flag}", **turn, page=n if n > 1 else ""), str(n))
            for n in range(1, pieces(len(ships), 50) + 1)
        )
        sorts = inline(
            (query(f"/flag/{flag}", sort=s, dir=d), f"by {s}, {d}")
            for s in ("name", "imo", "built", "gt", "length")
            for d in ("asc", "desc")
        )
        return self.show(
            r, f"Ships under the flag of {flag}", (sorts if self.traps else "") + table + f"<p>Pages: {pages}</p>"
        )

    def data(self, index: int) -> list[tuple[str, str]]:
        chance = seeded("data", index)
        return [
            ("IMO number", str(9100000 + index * 13)),
            ("Type", chance.choice(self.TYPES)),
            ("Built", str(chance.randint(1962, 2023))),
            ("Gross tonnage", f"{chance.randint(90, 180000):,}"),
            ("Length", f"{chance.randint(180, 4000) / 10} m"),
            ("Beam", f"{chance.randint(60, 600) / 10} m"),
            ("Status", chance.choice(("In service", "In service", "Laid up", "Broken up"))),
        ]

    def ship(self, r: Request, number: str) -> Answer:
        index, rest = divmod(int(number) - 9100000, 13)
        if rest or not 0 <= index < self.size:
            return None
        flag = seeded("flag", index).choice(self.FLAGS)
        near = [(self.at(k), self.title(k)) for k in (index - 1, index + 1) if 0 <= k < self.size]
        body = fields([*self.data(index), ("Flag", flag)]) + f"<p>{inline(near)}</p>"
        if self.traps:
            other = r.chance.randrange(self.size)
            tabs = [
                (f"/ship/{number}?tab={tab}", tab.title())
                for tab in ("particulars", "photos", "certificates", "owners")
            ]
            body = f"<p>{inline(tabs)}</p>{body}" + a(
                f"/compare?ids={number},{9100000 + other * 13}", f"Compare with {self.title(other)}"
            )
        return self.show(r, self.title(index), body, (f"/flag/{flag}", flag))

    def compare(self, r: Request) -> Answer:
        ids = [int(x) for x in r.query.get("ids", "").split(",") if x.isdigit()][:8]
        known = [(x - 9100000) // 13 for x in ids if 0 <= (x - 9100000) // 13 < self.size]
        if not known:
            return None
        table = rows(
            zip(*([value for _, value in self.data(k)] for k in known), strict=True), (self.title(k) for k in known)
        )
        more = ul(
            (f"/compare?ids={','.join(map(str, [*ids, 9100000 + k * 13]))}", f"Add {self.title(k)}")
            for k in r.chance.sample(range(self.size), 5)
        )
        return self.show(r, "Comparison of ships", table + more)


class Exams(World):
    """Results by roll number: subjects and marks, no names. Listed by centre; each links to the next and the previous
    number.

    Traps: the next number goes on behind the last, a session id in the path of every link, print and mail views.
    """

    name = "exams"
    SUBJECTS = (
        "English",
        "Mathematics",
        "Physics",
        "Chemistry",
        "Biology",
        "History",
        "Geography",
        "Economics",
        "Computing",
    )

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.centres = pieces(size, 40)
        self.frame = Frame(
            "Board of Examinations",
            (("/", "Results"), ("/grades", "Grades")),
            (("/grades", "Grades"),),
            "The printed certificate alone is valid.",
            style=1,
        )
        self.real |= (
            {"/grades"}
            | {f"/2023/centre/{1000 + c}/" for c in range(self.centres)}
            | {f"/2023/result/{200001 + k}.html" for k in range(size)}
        )
        self.route(
            "/",
            lambda r: self.show(
                r,
                "Results of 2023",
                ul(
                    (f"/2023/centre/{1000 + c}/", f"Centre {1000 + c}, {place('centre', c)}")
                    for c in range(self.centres)
                ),
            ),
        )
        self.route(
            "/grades",
            lambda r: self.show(
                r, "Grades", rows([x, f"{y} to {y + 9}"] for x, y in zip("ABCDE", (90, 80, 70, 60, 50), strict=True))
            ),
        )
        self.route(r"/2023/centre/(\d+)/", self.centre)
        self.route(r"/2023/result/(\d+)\.html", self.result)

    def key(self, target: str) -> str:
        return re.sub(";jsessionid=[0-9A-F]+", "", target)

    def answer(self, target, chance):  # type: ignore[no-untyped-def]
        page = super().answer(self.key(target), chance)
        if self.traps and isinstance(page, str):
            session = re.search("jsessionid=([0-9A-F]+)", target)
            mark = session[1] if session else f"{chance.getrandbits(128):032X}"
            page = re.sub(r'href="(/[^"?]*)', rf'href="\1;jsessionid={mark}', page)
        return page

    def show(self, r: Request, title: str, body: str) -> str:
        return self.frame.page(title, body, [("/", "2023")])

    def centre(self, r: Request, number: str) -> Answer:
        first = (int(number) - 1000) * 40
        listed = range(first, min(first + 40, self.size))
        links = ul((f"/2023/result/{200001 + k}.html", str(200001 + k)) for k in listed)
        return (
            self.show(r, f"Centre {number}, {place('centre', int(number) - 1000)}", links)
            if first >= 0 and listed
            else None
        )

    def result(self, r: Request, number: str) -> Answer:
        index = int(number) - 200001
        steps = [
            (f"/2023/result/{n}.html", str(n))
            for n in (int(number) - 1, int(number) + 1)
            if self.traps or 0 <= n - 200001 < self.size
        ]
        if not 0 <= index < self.size:
            return (
                self.show(
                    r, f"Roll number {number}", f"<p>There is no result for roll number {number}.</p>{inline(steps)}"
                )
                if self.traps
                else None
            )
        chance = seeded("marks", index)
        marks = [(subject, chance.randint(31, 99)) for subject in chance.sample(self.SUBJECTS, 5)]
        table = rows(
            ([subject, str(mark), "FEDCBA"[max(0, (mark - 40) // 10)]] for subject, mark in marks),
            ("Subject", "Marks", "Grade"),
        )
        total = sum(mark for _, mark in marks)
        verdict = "PASS" if min(mark for _, mark in marks) >= 40 else "FAIL"
        body = f"<p>Roll number {number}</p>{table}<p>Total {total} of 500. {verdict}</p><p>{inline(steps)}</p>"
        if self.traps:
            body += inline(
                [
                    (f"/2023/result/{number}.html?view=print", "Print"),
                    (f"/2023/result/{number}.html?view=mail", "Send by mail"),
                ]
            )
        return self.show(r, f"Roll number {number}", body)
