"""Random links of every kind."""

from periplus.model.page import LINK_KINDS, POSITIONS, Link, Links
from periplus.store.rows import NewLinks
from periplus.urls.canonical import canonical, url_id

ANCHORS = ("", "words", 'a "quoted" one', "tab\tinside", "příliš \N{SHIP}", "back\\slash", "3 in\x1fone", "\u2028")
FRAGMENTS = ((), ("one",), ("one", "two"), ("%20", "3"))


def drawn(rng, source, many):
    """The links of a page: up to `many` links of every kind, to at most `many` targets."""
    links = {
        (target, kind, position, nofollow): Link(
            target,
            kind,
            position,
            rng.choice(ANCHORS),
            nofollow,
            rng.choice(FRAGMENTS),
            rng.choice((1, 1, 1, 2, 70_000)),
        )
        for target, kind, position, nofollow in (
            (
                canonical(f"http://a.test/{rng.randrange(many)}"),
                rng.choice(LINK_KINDS),
                rng.choice(POSITIONS),
                rng.random() < 0.2,
            )
            for _ in range(many)
        )
    }
    columns = Links.of(links.values())
    return NewLinks(0, source, columns, list(map(url_id, columns.targets)))
