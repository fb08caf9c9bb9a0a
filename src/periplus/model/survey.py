"""Input of a survey of many sites: units, rules and marks."""

from __future__ import annotations

from enum import StrEnum

from periplus.model.tables import INTEGER, TEXT, Column, Table, columns_of
from periplus.values import frozen


@frozen
class Unit:
    """A site as counted by a survey. It owns all URLs under its prefixes, except those under a longer prefix.

    prefixes: as written by `urls.units.prefix_of`: `example.org`, `example.org/~ann`, or `*.example.org` for a host
    and its subdomains.
    """

    name: str
    short: str  # short name for drawings and matrices
    start: str  # start URL; empty if the site was found and not chosen
    prefixes: tuple[str, ...]
    bundle: str = ""  # organisation whose sites count as one vertex; empty: only this unit
    official: bool = True  # whether it is the organisation's official site


class DocumentModel(StrEnum):
    """What counts as one document when links are counted. A link is a distinct pair of documents (alternative document
    models).
    """

    PAGE = "page"
    DIRECTORY = "directory"  # host and path up to the last slash
    HOST = "host"
    SITE = "site"  # the unit: at most one link per pair


class SiteStatus(StrEnum):
    """The user's decision on a site, as in Hyphe."""

    IN = "in"  # in the target set
    OUT = "out"  # reviewed, and left out of all lists
    UNDECIDED = "undecided"  # to be reviewed again
    DISCOVERED = "discovered"  # not reviewed


class CompanionClass(StrEnum):
    """Strength of the links between a site and the target set."""

    PRIVATE = "private"  # one unit links to it
    WEAK = "weak"  # several units link to it, but fewer than for STRONG
    STRONG = "strong"
    COMMUNICATOR = "communicator"  # strong, and links back: connects the target set
    GLOBAL = "global"  # on the list of sites that everyone links to


# Search engines, counters, social networks, software vendors. Our own list; users can edit it for their survey.
# Platforms that host other people's sites on subdomains are not included.
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
    """Thresholds for the classes of companion sites. A change needs no new crawl."""

    strong_least: int = 3  # minimum number of distinct target units
    strong_share: float = 0.05  # minimum share of the target set
    back_least: int = 2  # minimum target units that a communicator links back to
    global_sites: tuple[str, ...] = GLOBAL_SITES  # domains, including subdomains


@frozen
class SiteMark:
    """A user's mark on a site, identified by its first prefix."""

    prefix: str
    status: SiteStatus = SiteStatus.DISCOVERED
    tags: tuple[str, ...] = ()


_UNIT = Column("unit", TEXT, "the site of the page", facet=True)
_PAGE = Column("page", TEXT, "the page with the link", searched=True)
_TARGET = Column("target", TEXT, "the URL that it leads to", searched=True)
_ANCHOR = Column("anchor", TEXT, "link text", searched=True)
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
                depth integer facet: depth of the target: clicks from the start
                processed boolean facet: whether the target was requested
                reason text facet: reason of the target's state
            """),
                _ANCHOR,
            ),
        ),
        Table(
            "external",
            "Links from one of the sites to another site, with their context if it is stored.",
            (
                _UNIT,
                _PAGE,
                _TARGET,
                _ANCHOR,
                _POSITION,
                Column("title", TEXT, "title of the page", searched=True),
                Column("times", INTEGER, "number of occurrences on the page"),
            ),
        ),
        Table(
            "bad",
            "Links whose URL cannot be fetched.",
            (
                _UNIT,
                _PAGE,
                Column("text", TEXT, "the URL as written", searched=True),
                Column("why", TEXT, "why it cannot be fetched", facet=True),
                _ANCHOR,
                _POSITION,
            ),
        ),
    )
}
"""The links that a survey collects, by kind."""
