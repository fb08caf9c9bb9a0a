"""A site where each page has many URLs. The content of each URL is known, so detected aliases can be checked."""

import random
from dataclasses import dataclass
from functools import cached_property

WORDS = [a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmnrs"]


@dataclass
class Site:
    """Pages by name. Every page of the site writes the URLs of its links in its own variants."""

    seed: int = 1
    origin: str = "a.test"  # with its port
    size: int = 20  # number of lists: there are 15 times as many pages

    def name(self, url: str) -> str:
        """The name of the page that the server returns for a URL."""
        path, _, query = url[url.index("/", 8) :].partition("?")
        parameters = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)
        if path == "/view.php":
            return f"article {parameters['id']}"
        if path == "/list.php":
            return f"list {parameters['page']} by {parameters.get('order', 'date')}"
        if path.startswith("/page/"):
            return f"plain {path}"
        return "folder " + path.replace("/index.html", "/").strip("/")

    def spelled(self, name: str, rng: random.Random) -> str:
        kind, _, rest = name.partition(" ")
        host = rng.choice([f"http://{self.origin}", f"http://www.{self.origin}"])
        sid = rng.choice(["", f"sid={rng.randrange(9)}f3c9e"])
        utm = rng.choice(["", "", "utm_source=mail", "utm_source=feed&utm_medium=rss"])
        if kind == "article":
            pairs = [f"id={rest}", sid, utm, rng.choice(["", "print=1"])]
            rng.shuffle(pairs)
            return f"{host}/view.php?" + "&".join(filter(None, pairs))
        if kind == "list":
            page, _, order = rest.partition(" by ")
            pairs = [f"page={page}", f"order={order}", sid]
            rng.shuffle(pairs)
            return f"{host}/list.php?" + "&".join(filter(None, pairs))
        if kind == "plain":
            return host + rest + ("?" + utm if utm else "")
        return f"{host}/{rest}" + (rng.choice(["", "/", "/index.html"]) if rest else rng.choice(["/", "/index.html"]))

    @cached_property
    def names(self) -> list[str]:
        words = WORDS[: 3 * self.size]
        return (
            [f"article {number}" for number in range(7 * self.size)]
            + [f"folder docs/{word}" for word in words]
            + [f"list {page} by {order}" for page in range(self.size) for order in ("price", "name")]
            + [f"plain /page/{word}" for word in words]
        )

    def links(self, name: str) -> list[str]:
        rng = random.Random(f"{self.seed} {name}")
        names = self.names
        if name not in names:  # the home page
            return [self.spelled(each, rng) for each in names[::7]]
        at = names.index(name)
        near = [names[(at + step) % len(names)] for step in range(1, 6)]
        return [self.spelled(each, rng) for each in near + rng.choices(names, k=25)]
