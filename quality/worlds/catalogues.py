"""Catalogues of cross-linked records: a library and a family tree."""

from __future__ import annotations

from typing import ClassVar

from kit import (
    Answer,
    Frame,
    Redirect,
    Request,
    World,
    a,
    esc,
    fields,
    inline,
    person,
    phrase,
    pieces,
    place,
    prose,
    query,
    rows,
    seeded,
    ul,
)


class Library(World):
    """A catalogue like Koha: records listed by author and by shelf mark.

    Traps: searches by subject and author with facets, orders and offsets, the shelf browser, reserve and cart pages
    behind a log-in. MARC and ISBD views are neutral.
    """

    name = "library"
    FACETS: ClassVar = {
        "itype": ("BK", "CD", "DVD", "MAP"),
        "branch": ("MAIN", "EAST", "WEST"),
        "ln": ("eng", "ger", "fre"),
        "avail": ("1",),
    }

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.authors = max(1, size // 4)
        self.frame = Frame(
            "Town library",
            (
                ("/", "Catalogue"),
                ("/hours.html", "Opening hours"),
                *(
                    (("/cgi-bin/opac-user.pl", "Your account"), ("/cgi-bin/opac-search.pl?idx=kw&q=", "Search"))
                    if traps
                    else ()
                ),
            ),
            (("/hours.html", "Opening hours"),),
            "Powered by library software",
            style=0,
        )
        self.real |= (
            {"/hours.html"}
            | {self.at(k) for k in range(size)}
            | {f"/browse/{n}.html" for n in range(pieces(self.authors, 50))}
        )
        if traps:
            self.neutral |= {
                self.at(k).replace("opac-", f"opac-{view}") for k in range(size) for view in ("MARC", "ISBD")
            }
        self.route(
            "/",
            lambda r: self.show(
                "Catalogue by author",
                ul((f"/browse/{n}.html", f"Authors, part {n + 1}") for n in range(pieces(self.authors, 50))),
            ),
        )
        self.route(
            "/hours.html",
            lambda r: self.show("Opening hours", rows([day, "10 to 18"] for day in ("Monday", "Tuesday", "Friday"))),
        )
        self.route(r"/browse/(\d+)\.html", self.browse)
        self.route("/cgi-bin/opac-(MARC|ISBD|)detail.pl", self.detail)
        if traps:
            self.route("/cgi-bin/opac-search.pl", self.search)
            self.route("/cgi-bin/opac-(?:reserve|addbybiblionumber|user|sendbasket).pl", self.guarded)

    def guarded(self, r: Request) -> Answer:
        return self.show(
            "Log in to your account",
            "<p>You must log in. Card number:</p>"
            "<form method=post><input name=userid><input name=password type=password></form>",
        )

    def at(self, index: int) -> str:
        return f"/cgi-bin/opac-detail.pl?biblionumber={index + 1}"

    def author(self, index: int) -> str:
        return person("author", index % self.authors)

    def title(self, index: int) -> str:
        return phrase(seeded("title", index).randint(1, 5), "book", index)

    def show(self, title: str, body: str) -> str:
        return self.frame.page(
            title,
            body,
            side="<h4>New in the library</h4>"
            + ul((self.at(k), self.title(k)) for k in range(0, self.size, max(1, self.size // 6))),
        )

    def browse(self, r: Request, number: str) -> Answer:
        first = int(number) * 50
        listed = range(first, min(first + 50, self.authors))
        shelves = "".join(
            f"<h3>{person('author', n)}</h3>"
            + ul((self.at(k), self.title(k)) for k in range(n, self.size, self.authors))
            for n in listed
        )
        return self.show(f"Authors, part {int(number) + 1}", shelves) if listed else None

    def data(self, index: int) -> list[tuple[str, str, str]]:
        chance = seeded("record", index)
        return [
            ("100", "Author", self.author(index)),
            ("245", "Title", self.title(index)),
            ("020", "ISBN", f"978{chance.randrange(10**10):010}"),
            ("260", "Published", f"{place('publisher', chance.randrange(40)).strip()}, {chance.randint(1890, 2023)}"),
            ("300", "Description", f"{chance.randint(48, 900)} p. ; {chance.randint(18, 31)} cm"),
            ("650", "Subject", phrase(1, "subject", chance.randrange(80))),
            (
                "952",
                "Shelf mark",
                f"{chance.randint(100, 999)}.{chance.randint(1, 99)} {self.author(index)[-3:].upper()}",
            ),
        ]

    def detail(self, r: Request, view: str) -> Answer:
        index = int(r.query.get("biblionumber", "0")) - 1
        if not 0 <= index < self.size or (view and not self.traps):
            return None
        if view:
            return self.show(self.title(index), rows([tag, "##", esc(value)] for tag, _, value in self.data(index)))
        body = fields((name, value) for _, name, value in self.data(index))
        same = ul(
            (self.at(k), self.title(k)) for k in range(index % self.authors, self.size, self.authors) if k != index
        )
        body += f"<h3>By the same author</h3>{same}"
        if self.traps:
            number, subject = index + 1, self.data(index)[5][2]
            body += inline(
                [
                    (f"/cgi-bin/opac-MARCdetail.pl?biblionumber={number}", "MARC view"),
                    (f"/cgi-bin/opac-ISBDdetail.pl?biblionumber={number}", "ISBD view"),
                    (f"/cgi-bin/opac-reserve.pl?biblionumber={number}", "Place hold"),
                    (f"/cgi-bin/opac-addbybiblionumber.pl?biblionumber={number}", "Save to lists"),
                    (query("/cgi-bin/opac-search.pl", q=f"au:{self.author(index)}"), self.author(index)),
                    (query("/cgi-bin/opac-search.pl", q=f"su:{subject}"), subject),
                    *(
                        (
                            f"{self.at(index)}&shelfbrowse_itemnumber={number * 3 + step}#shelfbrowser",
                            f"Browse shelf {step}",
                        )
                        for step in (-1, 1)
                    ),
                ]
            )
        return self.show(self.title(index), body)

    def search(self, r: Request) -> Answer:
        asked = {name: value[:120] for name, value in r.query.items() if name in ("q", "limit", "sort_by", "offset")}
        start = int(asked.get("offset", 0))
        chance = seeded("opac", asked.get("q"), asked.get("limit"))
        found = chance.sample(range(self.size), min(self.size, chance.randint(1, 90)))
        limits = asked.get("limit", "").split(" ") if asked.get("limit") else []
        links = [
            (
                query("/cgi-bin/opac-search.pl", **asked | {"limit": " ".join(sorted({*limits, f"{name}:{value}"}))}),
                value,
            )
            for name, values in self.FACETS.items()
            for value in values
        ]
        links += [
            (query("/cgi-bin/opac-search.pl", **asked | {"sort_by": f"{order}_{way}"}), f"{order} {way}")
            for order in ("title", "author", "pubdate", "popularity")
            for way in ("az", "za")
        ]
        links += [
            (query("/cgi-bin/opac-search.pl", **asked | {"offset": s}), str(s // 20 + 1))
            for s in range(0, len(found), 20)
        ]
        hits = rows([a(self.at(k), self.title(k)), f"by {self.author(k)}"] for k in found[start : start + 20])
        return self.show(
            f"Results of search for {asked.get('q', '')}",
            f"<p>Your search returned {len(found)} results.</p>{hits}{inline(links)}",
        )


class Genealogy(World):
    """Family trees like TNG: persons, families, surnames.

    Traps: pedigrees by generations and form, relationships of any two persons, a calendar of birthdays, print views,
    languages, searches by name and place.
    """

    name = "genealogy"

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.surname_of = [
            seeded("line", k // 8).choice([person("s", n).split()[1] for n in range(60)]) for k in range(size)
        ]
        self.by_name: dict[str, list[int]] = {}
        for k, name in enumerate(self.surname_of):
            self.by_name.setdefault(name, []).append(k)
        menu = (
            ("/", "Surnames"),
            ("/places.php", "Places"),
            *((("/calendar.php?m=5&year=2024", "Dates"), ("/relateform.php", "Relationship")) if traps else ()),
        )
        self.frame = Frame(
            "Our family history",
            menu,
            (("/privacy.php", "Data protection"),),
            "Maintained by the family. Powered by genealogy software.",
            style=1,
        )
        self.families = pieces(size, 4)
        self.real |= (
            {"/places.php", "/privacy.php"}
            | {self.at(k) for k in range(size)}
            | {self.family_at(f) for f in range(self.families)}
            | {query("/search.php", mylastname=n) for n in self.by_name}
        )
        self.route(
            "/",
            lambda r: self.show(
                "Surnames",
                ul((query("/search.php", mylastname=n), f"{n} ({len(k)})") for n, k in sorted(self.by_name.items())),
            ),
        )
        self.route(
            "/places.php", lambda r: self.show("Places", rows([place("home", n).strip(), str(n)] for n in range(40)))
        )
        self.route("/privacy.php", lambda r: self.show("Data protection", f"<p>{prose(9, 'privacy')}</p>"))
        self.route("/search.php", self.surname)
        self.route("/getperson.php", self.person)
        self.route("/familygroup.php", self.family)
        if traps:
            self.route("/(?:pedigree|pedigreetext|descend|register|timeline).php", self.chart)
            self.route("/relationship.php", self.relationship)
            self.route(
                "/relateform.php", lambda r: self.show("Relationship", "<form><input name=a><input name=b></form>")
            )
            self.route(
                "/changelanguage.php",
                lambda r: Redirect(r.query.get("to", "/") if r.query.get("to", "/").startswith("/") else "/"),
            )
            self.route("/calendar.php", self.calendar)

    def at(self, index: int) -> str:
        return f"/getperson.php?personID=I{index + 1}&tree=main"

    def family_at(self, family: int) -> str:
        return f"/familygroup.php?familyID=F{family + 1}&tree=main"

    def title(self, index: int) -> str:
        first = ("John", "Mary", "William", "Anna", "George", "Sarah", "Thomas", "Jane")
        return f"{seeded('first', index).choice(first)} {self.surname_of[index]}"

    def life(self, index: int) -> tuple[int, int]:
        chance = seeded("life", index)
        born = 1620 + index % 8 * 30 + chance.randint(0, 140)
        return born, born + chance.randint(0, 95)

    def show(self, title: str, body: str) -> str:
        side = (
            inline(
                (query("/changelanguage.php", newlanguage=n, to="/"), name)
                for n, name in enumerate(("English", "Deutsch", "Nederlands"))
            )
            if self.traps
            else ""
        )
        return self.frame.page(title, body, side=side)

    def surname(self, r: Request) -> Answer:
        name = r.query.get("mylastname", "")
        if not self.traps and (len(r.query) != 1 or name not in self.by_name):
            return None
        found = self.by_name.get(name, [])
        table = rows([a(self.at(k), self.title(k)), "b. {} d. {}".format(*self.life(k))] for k in found)
        orders = (
            inline(
                (query("/search.php", mylastname=name, order=o, lnqualify=q), f"{o} {q}")
                for o in ("name", "birth", "death", "changedate")
                for q in ("equals", "contains", "soundexof")
            )
            if self.traps
            else ""
        )
        return self.show(f"Persons named {name}", table + orders)

    def family(self, r: Request) -> Answer:
        family = int(r.query.get("familyID", "F0")[1:]) - 1
        if not 0 <= family < self.families:
            return None
        members = range(family * 4, min(family * 4 + 4, self.size))
        table = rows(
            [role, a(self.at(k), self.title(k)), "{} - {}".format(*self.life(k))]
            for role, k in zip(("Father", "Mother", "Child 1", "Child 2"), members, strict=False)
        )
        return self.show(f"Family of {self.title(members[0])}", table + self.tools(self.family_at(family)))

    def tools(self, at: str) -> str:
        return (
            inline([(f"{at}&tngprint=1", "Print"), (query("/changelanguage.php", newlanguage=2, to=at), "Deutsch")])
            if self.traps
            else ""
        )

    def person(self, r: Request) -> Answer:
        number = r.query.get("personID", "I0")[1:]
        index = int(number) - 1 if number.isdigit() else -1
        if not 0 <= index < self.size:
            return None
        chance, (born, died) = seeded("person", index), self.life(index)
        data = [
            (
                "Birth",
                f"{chance.randint(1, 28)} {chance.choice(('Jan', 'Apr', 'Sep'))} {born}, "
                + place("home", chance.randrange(40)).strip(),
            ),
            ("Death", died),
            ("Occupation", chance.choice(("Farmer", "Smith", "Weaver", "Sailor", "-"))),
            ("Person ID", f"I{index + 1}"),
        ]
        kin = [(self.family_at(index // 4), "Family")] + [
            (self.at(k), self.title(k)) for k in (index // 2, index * 2, index * 2 + 1) if k != index and k < self.size
        ]
        body = fields(data) + ul(kin)
        if self.traps:
            i, other = f"I{index + 1}", f"I{r.chance.randrange(self.size) + 1}"
            charts = [
                (query(f"/{chart}.php", personID=i, tree="main", generations=4), chart)
                for chart in ("pedigree", "pedigreetext", "descend", "register", "timeline")
            ]
            body += inline(
                [*charts, (query("/relationship.php", primaryID=i, secondID=other), f"Relationship to {other}")]
            )
        return self.show(self.title(index), body + self.tools(self.at(index)))

    def chart(self, r: Request) -> Answer:
        number = r.query.get("personID", "I0")[1:]
        index = int(number) - 1 if number.isdigit() else -1
        if not 0 <= index < self.size:
            return None
        line = [(index >> step) for step in range(4)]
        forms = [
            (query(r.path, personID=f"I{index + 1}", tree="main", generations=g, display=d), f"{g} generations, {d}")
            for g in range(2, 9)
            for d in ("standard", "compact", "box", "vertical")
        ]
        return self.show(
            f"{r.path[1:-4].title()} of {self.title(index)}",
            ul((self.at(k), self.title(k)) for k in line) + inline(forms),
        )

    def relationship(self, r: Request) -> Answer:
        ends = [int(r.query.get(name, "I0")[1:] or 0) - 1 for name in ("primaryID", "secondID")]
        if not all(0 <= end < self.size for end in ends):
            return None
        steps = seeded(*ends).randint(1, 14)
        more = inline(
            (
                query("/relationship.php", primaryID=f"I{ends[1] + 1}", secondID=f"I{k + 1}"),
                f"{self.title(ends[1])} and {self.title(k)}",
            )
            for k in r.chance.sample(range(self.size), 3)
        )
        return self.show(
            "Relationship",
            f"<p>{a(self.at(ends[0]), self.title(ends[0]))} and {a(self.at(ends[1]), self.title(ends[1]))} are "
            f"cousins, {steps} times removed.</p>{more}",
        )

    def calendar(self, r: Request) -> Answer:
        month, year = int(r.query.get("m", 5)), int(r.query.get("year", 2024))
        if not 1 <= month <= 12:
            return None
        number = year * 12 + month - 1
        near = [
            (f"/calendar.php?m={n % 12 + 1}&year={n // 12}", f"{n % 12 + 1}/{n // 12}")
            for n in (number - 1, number + 1, number - 12, number + 12)
        ]
        born = ul((self.at(k), self.title(k)) for k in seeded("month", month).sample(range(self.size), 12))
        return self.show(
            f"Birthdays, {month}/{year}",
            rows([[str(d) for d in range(w * 7 + 1, w * 7 + 8)] for w in range(4)]) + born + inline(near),
        )
