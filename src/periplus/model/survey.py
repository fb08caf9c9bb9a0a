"""What does the user of a survey of many sites say: which units, which rules, which marks?"""

from __future__ import annotations

from enum import StrEnum

from periplus.model.tables import INTEGER, TEXT, Column, Table, columns_of
from periplus.values import frozen


@frozen
class Unit:
    """What a survey counts as one site. It owns every URL below one of its prefixes that no longer prefix claims.

    prefixes: as `urls.units.prefix_of` writes them: `example.org`, `example.org/~ann`, `*.example.org`
    for a host and all below it.
    """

    name: str
    short: str  # for drawings and matrices
    start: str  # where its crawl begins; empty: it was met, not chosen
    prefixes: tuple[str, ...]
    bundle: str = ""  # the organisation whose sites count as one vertex; empty: the unit alone
    official: bool = True  # an organisation's official site, not one of its others


class DocumentModel(StrEnum):
    """What counts as one document when links are counted:
    a link is a distinct pair of them (alternative document models).
    """

    PAGE = "page"
    DIRECTORY = "directory"  # host and path up to the last slash
    HOST = "host"
    SITE = "site"  # the unit: linked or not


class SiteStatus(StrEnum):
    """What the user decided on a site, as Hyphe has it."""

    IN = "in"  # of the target set
    OUT = "out"  # looked at, and left out of all lists
    UNDECIDED = "undecided"  # to be looked at again
    DISCOVERED = "discovered"  # nobody looked yet


class CompanionClass(StrEnum):
    """How strongly a site outside the target set is tied to it."""

    PRIVATE = "private"  # one unit links to it
    WEAK = "weak"  # several do, fewer than a strong one needs
    STRONG = "strong"
    COMMUNICATOR = "communicator"  # strong, and links back: it ties the target set together
    GLOBAL = "global"  # on the list of those that everybody links to


# Search engines, counters, social networks, makers of systems: written down by us, to be edited by whoever surveys.
# Platforms whose subdomains are other people's sites are not among them.
GLOBAL_SITES = (
    *("google.com", "google.ru", "google.cz", "google.hu", "google.de", "google.co.uk"),
    *(
        "bing.com",
        "yahoo.com",
        "duckduckgo.com",
        "baidu.com",
        "yandex.ru",
        "yandex.com",
        "rambler.ru",
        "mail.ru",
        "seznam.cz",
    ),
    *(
        "facebook.com",
        "twitter.com",
        "x.com",
        "instagram.com",
        "youtube.com",
        "youtu.be",
        "linkedin.com",
        "vk.com",
        "ok.ru",
        "t.me",
        "telegram.org",
    ),
    *(
        "whatsapp.com",
        "pinterest.com",
        "flickr.com",
        "vimeo.com",
        "tiktok.com",
        "reddit.com",
        "rutube.ru",
        "addtoany.com",
    ),
    *(
        "liveinternet.ru",
        "hotlog.ru",
        "spylog.com",
        "statcounter.com",
        "google-analytics.com",
        "googletagmanager.com",
        "goo.gl",
        "bit.ly",
    ),
    *("wordpress.org", "joomla.org", "drupal.org", "typo3.org", "1c-bitrix.ru", "cloudflare.com", "recaptcha.net"),
    *(
        "adobe.com",
        "microsoft.com",
        "apple.com",
        "mozilla.org",
        "w3.org",
        "creativecommons.org",
        "gnu.org",
        "wikipedia.org",
        "wikimedia.org",
    ),
)


@frozen
class CompanionRules:
    """Where the classes of companion sites begin; another choice needs no new crawl."""

    strong_least: int = 3  # different target units, at least
    strong_share: float = 0.05  # of the target set, at least
    back_least: int = 2  # target units that a communicator links back to
    global_sites: tuple[str, ...] = GLOBAL_SITES  # domains: they and all below


@frozen
class SiteMark:
    """What the user noted on a site, named by its first prefix."""

    prefix: str
    status: SiteStatus = SiteStatus.DISCOVERED
    tags: tuple[str, ...] = ()


_UNIT = Column("unit", TEXT, "the site whose page it is", facet=True)
_PAGE = Column("page", TEXT, "the page that holds the link", searched=True)
_TARGET = Column("target", TEXT, "where it leads", searched=True)
_ANCHOR = Column("anchor", TEXT, "its words", searched=True)
_POSITION = Column("position", TEXT, "part of the page", facet=True)
SURVEY_LINKS = {
    table.name: table
    for table in (
        Table(
            "internal",
            "Links between two pages of one of the survey's sites.",
            (
                _UNIT,
                _PAGE,
                _TARGET,
                *columns_of("""
                depth integer facet: of the target: links from the start
                processed boolean facet: whether the target was asked for
                reason text facet: what became of the target
            """),
                _ANCHOR,
            ),
        ),
        Table(
            "external",
            "Links from a site to another or to one outside, with their surroundings as far as they are kept.",
            (
                _UNIT,
                _PAGE,
                _TARGET,
                _ANCHOR,
                _POSITION,
                Column("title", TEXT, "of the page", searched=True),
                Column("times", INTEGER, "how often the page holds it"),
            ),
        ),
        Table(
            "bad",
            "What stood where an address belongs, and is none.",
            (
                _UNIT,
                _PAGE,
                Column("text", TEXT, "what stood where an address belongs", searched=True),
                Column("why", TEXT, "why that is none", facet=True),
                _ANCHOR,
                _POSITION,
            ),
        ),
    )
}
"""The links that a survey collects, by kind."""
