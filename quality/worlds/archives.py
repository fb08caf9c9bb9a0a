"""Archives: a mailing list and a photo gallery."""

from __future__ import annotations

import datetime
import re

from kit import (
    Answer,
    Frame,
    Link,
    Redirect,
    Request,
    World,
    a,
    esc,
    fields,
    inline,
    person,
    phrase,
    place,
    prose,
    query,
    rows,
    seeded,
    ul,
    vocabulary,
)

DAY = datetime.timedelta(days=1)


class Mails(World):
    """A list archive like Pipermail: months with indexes by thread, date, subject and author; messages in chains.

    Traps: reply forms, related searches, a calendar of days without end, attachments behind redirects with new
    tokens.
    """

    name = "mails"
    VIEWS = ("thread", "date", "subject", "author")

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.months = [range(start, min(start + 80, size)) for start in range(0, size, 80)]
        self.frame = Frame(
            "The gardeners list",
            (("/", "Archives"), ("/info.html", "More info on this list")),
            (("/info.html", "The list's page"),),
            "",
            style=1,
        )
        self.real |= (
            {"/info.html"}
            | {f"/{self.month(n)}/thread.html" for n in range(len(self.months))}
            | {self.at(k) for k in range(size)}
        )
        self.neutral |= {f"/{self.month(n)}/{view}.html" for n in range(len(self.months)) for view in self.VIEWS[1:]}
        self.route("/", self.home)
        self.route("/info.html", lambda r: self.show("About the list", f"<p>{prose(8, 'list')}</p>"))
        self.route(r"/(\d{4}-[A-Z][a-z]+)/(thread|date|subject|author)\.html", self.index)
        self.route(r"/(\d{4}-[A-Z][a-z]+)/(\d{6})\.html", self.message)
        if traps:
            self.route(
                "/reply",
                lambda r: self.show(
                    "Reply", "<p>Subscribe before you post.</p><form method=post><textarea></textarea></form>"
                ),
            )
            self.route("/search", self.search)
            self.route(r"/day/(\d+)/(\d+)/(\d+)", self.day)
            self.route(r"/scrub/[0-9a-f]+", lambda r: Redirect(f"/attachment.php?token={r.chance.getrandbits(64):x}"))
            self.route(
                "/attachment.php",
                lambda r: self.show(
                    "Attachment",
                    "<p>The attachment was scrubbed. Name: not available. Type: application/pgp-signature.</p>",
                ),
            )

    def month(self, number: int) -> str:
        return datetime.date(2001 + number // 12, number % 12 + 1, 1).strftime("%Y-%B")

    def at(self, index: int) -> str:
        return f"/{self.month(index // 80)}/{index:06}.html"

    def subject(self, index: int) -> str:
        start = index - index % 80 + index % 80 // 5 * 5
        return f"[gardeners] {'Re: ' if index != start else ''}{phrase(4, 'subject', start)}"

    def show(self, title: str, body: str) -> str:
        side = ul([("/day/2008/5/6", "Calendar"), ("/search?q=compost", "Search")]) if self.traps else ""
        return self.frame.page(title, body, side=side)

    def home(self, r: Request) -> Answer:
        return self.show(
            "Archives",
            rows(
                [self.month(n), inline((f"/{self.month(n)}/{view}.html", view) for view in self.VIEWS)]
                for n in reversed(range(len(self.months)))
            ),
        )

    def index(self, r: Request, month: str, view: str) -> Answer:
        number = next((n for n in range(len(self.months)) if self.month(n) == month), None)
        if number is None:
            return None
        listed = sorted(
            self.months[number],
            key=lambda k: (
                self.subject(k) if view == "subject" else person("writer", k % 90) if view == "author" else "",
                k,
            ),
        )
        views = inline((f"{other}.html", other) for other in self.VIEWS if other != view)
        entries = "".join(
            f"<li>{a(f'{k:06}.html', self.subject(k))} <i>{person('writer', k % 90)}</i></li>" for k in listed
        )
        return self.show(
            f"{month} archive by {view}",
            f"<p>Messages sorted by: {views}</p><p>Messages: {len(listed)}</p><ul>{entries}</ul>",
        )

    def message(self, r: Request, month: str, number: str) -> Answer:
        index = int(number)
        if index >= self.size or self.at(index) != r.path:
            return None
        near = [
            (f"{k:06}.html", name)
            for k, name in ((index - 1, "Previous message"), (index + 1, "Next message"))
            if 0 <= k < self.size and k // 80 == index // 80
        ]
        sorts = inline((f"{view}.html#{index}", view) for view in self.VIEWS)
        chance = seeded("mail", index)
        quoted = f"<i>&gt; {prose(1, 'mail', index - 1)}</i>\n" if index % 5 else ""
        body = f"<b>{person('writer', index % 90)}</b> "
        body += f"<i>{chance.randint(1, 28)} {month} {chance.randint(0, 23):02}:{chance.randint(0, 59):02}</i>"
        body += f"<ul><li>{inline(near)}</li><li>Messages sorted by: {sorts}</li></ul>"
        end = prose(chance.randint(0, 3), "mail", index, 2) if chance.random() < 0.7 else "Thanks."
        body += f"<pre>{quoted}{prose(1, 'mail', index)}\n{end}</pre><hr>"
        if self.traps:
            body += inline(
                [
                    (
                        query("/reply", inreplyto=f"{chance.getrandbits(64):x}@example", subject=self.subject(index)),
                        "Reply",
                    ),
                    (query("/search", q=self.subject(index).split()[-1]), "Related"),
                    (f"/scrub/{r.chance.getrandbits(64):x}", "signature.asc"),
                ]
            )
        return self.show(self.subject(index), body)

    def search(self, r: Request) -> Answer:
        asked, page = r.query.get("q", "")[:150], int(r.query.get("np", 1))
        chance = seeded("search", asked, page)
        hits = "".join(
            f"<p>{a(self.at(k), self.subject(k))}<br>{prose(1, 'mail', k)}</p>"
            for k in chance.sample(range(self.size), 10)
        )
        links = [
            (query("/search", q=asked, np=page + 1), "Next"),
            *((query("/search", q=f"{asked} {word}"), f"and {word}") for word in chance.sample(vocabulary(), 4)),
        ]
        return self.show(f"Results for {asked}", hits + inline(links))

    def day(self, r: Request, year: str, month: str, day: str) -> Answer:
        try:
            date = datetime.date(int(year), int(month), int(day))
            near = [date - DAY, date + DAY, date - 30 * DAY, date + 30 * DAY]
        except (ValueError, OverflowError):
            return None
        number = (date.year - 2001) * 12 + date.month - 1
        found = [k for k in self.months[number] if k % 28 == date.day - 1] if 0 <= number < len(self.months) else []
        return self.show(
            f"{date:%A, %d %B} {date.year}",
            (ul((self.at(k), self.subject(k)) for k in found) or "<p>No messages.</p>")
            + inline((f"/day/{d.year}/{d.month}/{d.day}", f"{d:%d.%m.}{d.year}") for d in near),
        )


class Gallery(World):
    """Photos like Piwigo: albums in pages of fifteen, a page for each photo with camera data.

    Traps: random lists whose address names their photos, each photo again within tags and lists, combinations of
    tags, orders, slide shows, a calendar of months posted and taken.
    """

    name = "gallery"
    TAGS = 30

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.albums = [range(start, min(start + 45, size)) for start in range(0, size, 45)]
        menu = (
            ("/", "Home"),
            ("/about.php", "About"),
            *(
                (
                    ("/random.php", "Random photos"),
                    ("/index.php?/created-monthly-calendar-2012-5", "Calendar"),
                    ("/index.php?/tags/1-tag", "Tags"),
                )
                if traps
                else ()
            ),
        )
        self.frame = Frame(
            "Holiday pictures", menu, (("/about.php", "Contact webmaster"),), "Powered by gallery software", style=2
        )
        self.real |= {"/about.php"} | {self.photo_at(k) for k in range(size)}
        self.real |= {self.album_at(n, s) for n, album in enumerate(self.albums) for s in range(0, len(album), 15)}
        self.route(
            "/",
            lambda r: self.show(
                "Albums", ul((self.album_at(n, 0), self.album_name(n)) for n in range(len(self.albums)))
            ),
        )
        self.route("/about.php", lambda r: self.show("About", f"<p>{prose(4, 'gallery')}</p>"))
        self.route(r"/index\.php\?/category/(\d+)(?:/start-(\d+))?(&.*)?", self.album)
        self.route(r"/picture\.php\?/(\d+)/([\w/,-]+)(&.*)?", self.photo)
        if traps:
            self.route(
                "/random.php",
                lambda r: Redirect(
                    f"/index.php?/list/{','.join(map(str, sorted(r.chance.sample(range(1, size + 1), 5))))}"
                ),
            )
            self.route(r"/index\.php\?/list/([\d,]+)", self.random_list)
            self.route(r"/index\.php\?/tags/([\w/-]+)", self.tags)
            self.route(r"/index\.php\?/(created|posted)-monthly-(calendar|list)-(\d+)-(\d+)", self.calendar)

    def album_name(self, number: int) -> str:
        return f"{place('album', number).strip()} {2003 + number % 20}"

    def album_at(self, number: int, start: int) -> str:
        return f"/index.php?/category/{number + 1}" + (f"/start-{start}" if start else "")

    def photo_at(self, index: int) -> str:
        return f"/picture.php?/{index + 1}/category/{index // 45 + 1}"

    def title(self, index: int) -> str:
        return f"DSC_{seeded('camera', index // 45).randint(0, 5000) + index % 45:04}"

    def show(self, title: str, body: str) -> str:
        return self.frame.page(
            title,
            body,
            side="<dl><dt>Albums</dt></dl>"
            + ul((self.album_at(n, 0), self.album_name(n)) for n in range(min(8, len(self.albums)))),
        )

    def thumbs(self, links: list[Link]) -> str:
        return "".join(
            f'<div class=thumb><a href="{esc(at)}"><img src="/i/{name}-th.jpg" alt="{name}"></a></div>'
            for at, name in links
        )

    def album(self, r: Request, number: str, start: str | None, more: str | None) -> Answer:
        album, first = int(number) - 1, int(start or 0)
        if (
            not 0 <= album < len(self.albums)
            or first >= len(self.albums[album])
            or first % 15
            or (more and not self.traps)
        ):
            return None
        shown = self.albums[album][first : first + 15]
        pages = inline((self.album_at(album, s), str(s // 15 + 1)) for s in range(0, len(self.albums[album]), 15))
        orders = (
            inline((f"{self.album_at(album, first)}&image_order={n}", f"Order {n}") for n in range(8))
            if self.traps
            else ""
        )
        return self.show(
            self.album_name(album),
            self.thumbs([(self.photo_at(k), self.title(k)) for k in shown]) + f"<p>{pages}</p>{orders}",
        )

    def photo(self, r: Request, number: str, section: str, more: str | None) -> Answer:
        index = int(number) - 1
        own = self.photo_at(index).endswith(f"/{section}")
        if not 0 <= index < self.size or (not self.traps and (more or not own)):
            return None
        chance = seeded("photo", index)
        data = fields(
            [
                ("File", f"{self.title(index)}.jpg"),
                ("Created on", f"{chance.randint(1, 28)} {chance.choice(('June', 'July'))} {2003 + index // 45 % 20}"),
                ("Dimensions", chance.choice(("3008*2000", "2000*3008", "4288*2848"))),
                (
                    "Camera",
                    f"f/{chance.choice((2.8, 4, 5.6, 8))}, 1/{chance.choice((60, 125, 250, 500))} s",
                ),
                ("Filesize", f"{chance.randint(800, 6000)} KB"),
                ("Visits", chance.randint(1, 9000)),
            ]
        )
        near = [
            (f"/picture.php?/{k + 1}/{section}", name)
            for k, name in ((index - 1, "Previous"), (index + 1, "Next"))
            if 0 <= k < self.size and k // 45 == index // 45
        ]
        body = f'<img src="/i/{self.title(index)}-me.jpg" alt="{self.title(index)}">{data}<p>{inline(near)}</p>'
        if self.traps:
            tags = chance.sample(range(1, self.TAGS + 1), 2)
            links = [(f"/index.php?/tags/{t}-tag", phrase(1, "tag", t)) for t in tags] + [
                (f"/picture.php?/{number}/tags/{t}-tag", "within this tag") for t in tags
            ]
            body += inline(
                [
                    *links,
                    (f"/picture.php?/{number}/{section}&slideshow=", "slideshow"),
                    (f"/picture.php?/{number}/{section}&metadata", "metadata"),
                ]
            )
        return self.show(self.title(index), body)

    def random_list(self, r: Request, ids: str) -> Answer:
        known = [int(x) for x in ids.split(",") if x.isdigit() and 0 < int(x) <= self.size]
        return self.show(
            "Random photos", self.thumbs([(f"/picture.php?/{k}/list/{ids}", self.title(k - 1)) for k in known])
        )

    def tags(self, r: Request, names: str) -> Answer:
        numbers = sorted({int(x) for x in re.findall(r"(?:^|/)(\d+)", names)})
        found = seeded("tags", *numbers).sample(range(self.size), min(15, self.size))
        more = [
            (f"/index.php?/tags/{names}/{t}-tag", f"and {phrase(1, 'tag', t)}")
            for t in range(1, self.TAGS + 1)
            if t not in numbers
        ]
        return self.show(
            "Tags " + " + ".join(phrase(1, "tag", t) for t in numbers),
            self.thumbs([(f"/picture.php?/{k + 1}/tags/{names}", self.title(k)) for k in found]) + inline(more),
        )

    def calendar(self, r: Request, field: str, view: str, year: str, month: str) -> Answer:
        number = int(year) * 12 + int(month) - 1
        near = [
            (f"/index.php?/{f}-monthly-{v}-{n // 12}-{n % 12 + 1}", f"{f} {n % 12 + 1}/{n // 12} as {v}")
            for n in (number - 1, number + 1, number - 12, number + 12)
            for f in ("created", "posted")
            for v in ("calendar", "list")
            if n > 0
        ]
        days = rows([[str(day + 1) for day in range(week * 7, week * 7 + 7)] for week in range(4)])
        return self.show(f"{field} {month}/{year}", days + inline(near))
