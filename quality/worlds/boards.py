"""Sites with many authors: a bug tracker and a forum."""

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
    pieces,
    prose,
    query,
    rows,
    seeded,
    sentence,
    ul,
    vocabulary,
)

DAY = datetime.timedelta(days=1)


class Bugs(World):
    """A tracker like Trac: tickets with comments, reports in pages, milestones, changesets.

    Traps: a timeline back through time, queries by any columns and orders, histories and diffs of a ticket, reply
    forms, CSV.
    """

    name = "bugs"
    PARTS = ("core", "parser", "docs", "gui", "net", "build", "tests", "i18n")
    STATES = ("new", "accepted", "closed", "reopened")

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        menu = [("/", "Wiki"), ("/roadmap", "Roadmap"), ("/report/1", "View tickets")]
        if traps:
            menu += [
                ("/timeline", "Timeline"),
                ("/query?order=priority", "Custom query"),
                ("/search?q=", "Search"),
                ("/login", "Login"),
            ]
        self.frame = Frame(
            "Project tracker", tuple(menu), (("/about", "About"),), "Visit the project. By the developers."
        )
        self.changes = size // 3
        self.real |= (
            {"/roadmap", "/about"}
            | {f"/ticket/{k}" for k in range(1, size + 1)}
            | {f"/milestone/{m}.0" for m in range(1, 9)}
        )
        self.real |= {self.report_at(n) for n in range(1, pieces(size, 100) + 1)} | {
            f"/changeset/{k}" for k in range(1, self.changes + 1)
        }
        self.route(
            "/",
            lambda r: self.show(
                "Welcome",
                f"<p>{prose(5, 'trac')}</p>" + ul((f"/milestone/{m}.0", f"Milestone {m}.0") for m in range(1, 9)),
            ),
        )
        self.route("/(roadmap|about)", lambda r, x: self.show(x.title(), f"<p>{prose(7, x)}</p>"))
        self.route(
            r"/milestone/(\d)\.0", lambda r, m: self.show(f"Milestone {m}.0", f"<p>{prose(4, 'milestone', m)}</p>")
        )
        self.route(r"/report/1", self.report)
        self.route(r"/ticket/(\d+)", self.ticket)
        self.route(r"/changeset/(\d+)", self.changeset)
        if traps:
            self.route("/timeline", self.timeline)
            self.route("/query", self.query)
            self.route("/search", self.search)
            self.route(
                "/login",
                lambda r: self.show("Login", "<p>You must log in.</p><form method=post><input name=user></form>"),
            )

    def report_at(self, page: int) -> str:
        return query("/report/1", page=page if page > 1 else "")

    def show(self, title: str, body: str, *crumbs: Link) -> str:
        return self.frame.page(title, body, crumbs)

    def title(self, number: int) -> str:
        return phrase(5, "ticket", number)

    def properties(self, number: int) -> list[tuple[str, str]]:
        chance = seeded("bug", number)
        names = ("Reported by", "Owned by", "Priority", "Component", "Milestone", "Status")
        values = (
            person("dev", chance.randrange(60)),
            person("dev", chance.randrange(9)),
            chance.choice(("low", "normal", "high")),
            chance.choice(self.PARTS),
            f"{chance.randint(1, 8)}.0",
            chance.choice(self.STATES),
        )
        return list(zip(names, values, strict=True))

    def report(self, r: Request) -> Answer:
        page = int(r.query.get("page", 1))
        if not 1 <= page <= pieces(self.size, 100):
            return None
        numbers = list(range(page * 100 - 99, min(page * 100, self.size) + 1))
        order, sorts = r.query.get("sort", "") if self.traps else "", ""
        if order:
            numbers.sort(key=lambda k: seeded(order, k).random(), reverse=r.query.get("asc") == "0")
        if self.traps:
            sorts = inline(
                (query("/report/1", page=page, sort=s, asc=d), f"{s} {d}")
                for s in ("ticket", "summary", "component", "version", "owner")
                for d in (0, 1)
            )
            sorts += a(query("/report/1", page=page, format="csv"), "Comma-delimited text")
        links = inline((self.report_at(n), str(n)) for n in range(1, pieces(self.size, 100) + 1))
        table = rows(
            [a(f"/ticket/{k}", f"#{k}"), a(f"/ticket/{k}", self.title(k)), self.properties(k)[3][1]] for k in numbers
        )
        return self.show("Active tickets", f"{sorts}{table}<p>{links}</p>")

    def ticket(self, r: Request, text: str) -> Answer:
        number = int(text)
        if not 1 <= number <= self.size:
            return None
        chance, action = seeded("comments", number), r.query.get("action", "") if self.traps else ""
        count, at = chance.randint(0, 4), f"/ticket/{number}"
        if action == "history":
            versions = inline(
                (query(at, action="diff", version=v, old_version=o), f"{o} to {v}")
                for v in range(1, count + 2)
                for o in range(v)
            )
            return self.show(
                f"Change history of ticket #{number}",
                ul((query(at, version=v), f"Version {v}") for v in range(count + 2)) + versions,
            )
        if action == "diff":
            return self.show(
                f"Changes between versions of ticket #{number}",
                f"<pre>- {sentence(seeded(r.target))}\n+ {esc(prose(1, 'bug', number))}</pre>{a(at, 'back')}",
            )
        comments = ""
        for k in range(count):
            reply = a(query(at, replyto=k + 1) + "#comment", "Reply") if self.traps else ""
            text = (
                sentence(chance, 3, 20)
                if chance.random() < 0.7
                else chance.choice(("Still there in the last version.", "Fixed, thank you.", "Me too."))
            )
            change = (
                a(f"/changeset/{1 + (number * 7 + k) % self.changes}", f"[{1 + (number * 7 + k) % self.changes}]")
                if self.changes
                else ""
            )
            comments += f"<div id=c{k}><h4>Changed by {person('dev', chance.randrange(60))}</h4>"
            comments += f"<p>{text} {change}</p>{reply}</div>"
        near = [(f"/ticket/{k}", f"Ticket #{k}") for k in (number - 1, number + 1) if 1 <= k <= self.size]
        body = fields(self.properties(number)) + f"<p>{prose(2, 'bug', number)}</p>{comments}<p>{inline(near)}</p>"
        if self.traps:
            body += inline(
                [
                    (query(at, action="history"), "History"),
                    (query(at, format="csv"), "CSV"),
                    (query("/query", component=self.properties(number)[3][1], order="id"), "Same component"),
                ]
            )
        return self.show(f"#{number} {self.title(number)}", body)

    def changeset(self, r: Request, number: str) -> Answer:
        k = int(number)
        if not 1 <= k <= self.changes:
            return None
        near = [(f"/changeset/{n}", f"Changeset {n}") for n in (k - 1, k + 1) if 1 <= n <= self.changes]
        return self.show(
            f"Changeset {k}",
            f"<p>{inline(near)}</p>"
            + fields(
                [
                    ("Message", phrase(6, "change", k)),
                    ("Author", person("dev", k % 9)),
                    ("File", f"src/{vocabulary()[k % 90]}.c"),
                ]
            ),
        )

    def timeline(self, r: Request) -> Answer:
        try:
            start = datetime.date.fromisoformat(r.query.get("from", "2024-05-06"))
        except ValueError:
            return None
        chance, busy = seeded("timeline", start), datetime.date(2016, 1, 1) <= start <= datetime.date(2024, 5, 6)
        links = (
            ul((f"/ticket/{k}", f"Ticket #{k} changed") for k in chance.sample(range(1, self.size + 1), 6))
            if busy
            else "<p>No activity in this period.</p>"
        )
        near = [
            (query("/timeline", **{"from": start + DAY * step, "daysback": 30}), name)
            for step, name in ((-30, "Previous period"), (30, "Next period"))
        ]
        return self.show(f"Timeline, 30 days to {start:%d.%m.%Y}", links + inline(near))

    def query(self, r: Request) -> Answer:
        asked = {
            name: r.query[name] for name in ("component", "status", "order", "desc", "group", "page") if name in r.query
        }
        chance = seeded("query", sorted((k, v) for k, v in asked.items() if k in ("component", "status")))
        found = chance.sample(range(1, self.size + 1), min(60, self.size))
        page = int(asked.get("page", 1))
        found.sort(key=lambda k: seeded(asked.get("order"), k).random(), reverse="desc" in asked)
        links = [
            (query("/query", **asked | {name: value}), f"{name} {value}")
            for name, values in (
                ("component", self.PARTS),
                ("status", self.STATES),
                ("group", ("owner", "milestone", "type")),
                ("order", ("id", "summary", "owner", "priority", "changetime")),
                ("desc", ("1",)),
                ("page", (1, 2, 3)),
            )
            for value in values
        ]
        return self.show(
            "Custom query",
            ul((f"/ticket/{k}", f"#{k} {self.title(k)}") for k in found[page * 20 - 20 : page * 20]) + inline(links),
        )

    def search(self, r: Request) -> Answer:
        asked, page = r.query.get("q", "")[:100], int(r.query.get("page", 1))
        found = seeded("search", asked, page).sample(range(1, self.size + 1), 10)
        quick = ul((query("/search", q=phrase(1, r.target, k)), phrase(1, r.target, k)) for k in range(3))
        return self.show(
            f"Search {asked}",
            ul((f"/ticket/{k}", f"#{k}: {self.title(k)}") for k in found)
            + a(query("/search", q=asked, page=page + 1), "Next page")
            + quick,
        )


class Forum(World):
    """A board like phpBB: forums in pages of 25 threads, threads of one to thirty posts, fifteen on a page.

    Traps: a session id in every link, links to single posts, next and previous thread, reply, quote and report forms,
    member pages and searches that ask for a log-in, orders of the lists, print views.
    """

    name = "forum"

    def __init__(self, size: int, traps: bool) -> None:
        super().__init__(size, traps)
        self.forums = max(1, min(30, size // 100))
        self.posts = [1 + int(30 * seeded("posts", k).random() ** 6) for k in range(size)]
        menu = [("/index.php", "Board index"), ("/rules.php", "Rules")] + (
            [
                ("/ucp.php?mode=login", "Login"),
                ("/ucp.php?mode=register", "Register"),
                ("/search.php", "Search"),
                ("/memberlist.php", "Members"),
            ]
            if traps
            else []
        )
        self.frame = Frame(
            "Allotment talk",
            tuple(menu),
            (("/rules.php", "The team"),),
            "Powered by forum software. All times are UTC.",
            style=2,
        )
        self.real |= {"/index.php", "/rules.php"} | {
            self.thread_at(k, s) for k in range(size) for s in range(0, self.posts[k], 15)
        }
        self.real |= {
            self.forum_at(f, s) for f in range(self.forums) for s in range(0, max(1, len(self.listed(f))), 25)
        }
        self.route(
            "/(?:index.php)?",
            lambda r: self.show(
                "Board index", ul((self.forum_at(f, 0), phrase(2, "forum", f)) for f in range(self.forums))
            ),
        )
        self.route("/rules.php", lambda r: self.show("Rules", f"<p>{prose(9, 'rules')}</p>"))
        self.route("/viewforum.php", self.forum)
        self.route("/viewtopic.php", self.thread)
        if traps:
            self.route("/(?:ucp|posting|report|memberlist|search).php", self.guarded)

    def key(self, target: str) -> str:
        return re.sub(r"\?$", "", re.sub(r"(?<=[?&])sid=[0-9a-f]+&?", "", target)).rstrip("&")

    def answer(self, target, chance):  # type: ignore[no-untyped-def]
        page = super().answer(self.key(target), chance)
        if self.traps and isinstance(page, str):
            session = re.search("sid=([0-9a-f]+)", target)
            mark = session[1] if session else f"{chance.getrandbits(128):032x}"
            page = re.sub(
                r'href="(/[^"#?]*)(\?[^"#]*)?',
                lambda m: f'href="{m[1]}{m[2] + "&amp;" if m[2] else "?"}sid={mark}',
                page,
            )
        return page

    def listed(self, forum: int) -> range:
        return range(forum, self.size, self.forums)

    def forum_at(self, forum: int, start: int) -> str:
        return query("/viewforum.php", f=forum + 1, start=start or "")

    def thread_at(self, index: int, start: int) -> str:
        return query("/viewtopic.php", f=index % self.forums + 1, t=index + 1, start=start or "")

    def title(self, index: int) -> str:
        return phrase(seeded("len", index).randint(2, 6), "thread", index)

    def show(self, title: str, body: str, *crumbs: Link) -> str:
        return self.frame.page(
            title,
            body,
            crumbs,
            "<p>It is currently 6 May 2024</p>"
            + ul((self.thread_at(k, 0), self.title(k)) for k in range(min(5, self.size))),
        )

    def forum(self, r: Request) -> Answer:
        forum, start = int(r.query.get("f", "0")) - 1, int(r.query.get("start", 0))
        if not 0 <= forum < self.forums or start % 25 or start >= max(1, len(self.listed(forum))):
            return None
        threads, order = list(self.listed(forum)), r.query.get("sk", "") if self.traps else ""
        if order:
            threads.sort(key=lambda k: seeded(order, k).random(), reverse=r.query.get("sd") == "d")
        turn = {name: r.query[name] for name in ("st", "sk", "sd") if name in r.query and self.traps}
        pages = inline(
            (query("/viewforum.php", f=forum + 1, **turn, start=s or ""), str(s // 25 + 1))
            for s in range(0, len(threads), 25)
        )
        table = rows(
            [a(self.thread_at(k, 0), self.title(k)), f"by {person('poster', k % 500)}", str(self.posts[k] - 1)]
            for k in threads[start : start + 25]
        )
        sorts = (
            inline(
                (query("/viewforum.php", f=forum + 1, st=t, sk=s, sd=d), f"{t} {s} {d}")
                for t in (0, 7, 30)
                for s in "atrsv"
                for d in "ad"
            )
            if self.traps
            else ""
        )
        new = a(f"/posting.php?mode=post&f={forum + 1}", "Post a new topic") if self.traps else ""
        return self.show(phrase(2, "forum", forum), f"{new}{table}<p>{pages}</p>{sorts}")

    def thread(self, r: Request) -> Answer:
        if self.traps and r.query.get("p", "").isdigit():
            index, start = int(r.query["p"]) // 100 - 1, int(r.query["p"]) % 100 // 15 * 15
        else:
            index, start = int(r.query.get("t", "0")) - 1, int(r.query.get("start", 0))
        if not 0 <= index < self.size or start % 15 or start >= self.posts[index]:
            return None
        if self.traps and r.query.get("view") in ("next", "previous"):
            other = index + (self.forums if r.query["view"] == "next" else -self.forums)
            return (
                Redirect(self.thread_at(other, 0))
                if 0 <= other < self.size
                else self.show("Information", "<p>There are no newer topics.</p>")
            )
        chance, posts = seeded("thread", index, start), ""
        for k in range(start, min(start + 15, self.posts[index])):
            text = (
                prose(chance.randint(1, 4), "post", index, k)
                if chance.random() < 0.8
                else chance.choice(("Thanks!", "+1", "Me too.", "Bump."))
            )
            day = f"{chance.randint(1, 28)} {chance.choice(('Jan', 'May', 'Oct'))} {chance.randint(2008, 2023)}"
            posts += f"<div class=post><p>by {person('poster', chance.randrange(500))}, {day}</p><p>{text}</p>"
            posts += inline(self.actions(index, k)) + "</div>"
        pages = inline((self.thread_at(index, s), str(s // 15 + 1)) for s in range(0, self.posts[index], 15))
        f, t = index % self.forums + 1, index + 1
        more = (
            inline(
                (query("/viewtopic.php", f=f, t=t, view=view), f"{view} topic")
                for view in ("previous", "next", "print")
            )
            if self.traps
            else ""
        )
        return self.show(
            self.title(index),
            f"{posts}<p>{pages}</p>{more}",
            (self.forum_at(index % self.forums, 0), phrase(2, "forum", index % self.forums)),
        )

    def actions(self, index: int, post: int) -> list[Link]:
        if not self.traps:
            return []
        f, p = index % self.forums + 1, (index + 1) * 100 + post
        return [
            (f"/viewtopic.php?p={p}#p{p}", "Post"),
            (f"/posting.php?mode=quote&f={f}&p={p}", "Quote"),
            (f"/report.php?f={f}&p={p}", "Report"),
            (f"/memberlist.php?mode=viewprofile&u={p % 500}", "Profile"),
            (f"/search.php?author_id={p % 500}&sr=posts", "Search posts"),
        ]

    def guarded(self, r: Request) -> Answer:
        return self.show(
            "Login",
            "<p>The board requires you to be registered and logged in.</p>"
            "<form method=post><input name=username><input name=password></form>",
        )
