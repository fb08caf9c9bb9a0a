"""What is said of a site's templates: which pages were made by one, and what of them is navigation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from periplus.model.page import BlockKind, Part
from periplus.model.web import SiteKey, Url


@dataclass(frozen=True, slots=True)
class TemplateRules:
    """The parameters of Shorkin's method, by the names and with the values that he published; lengths and shares in per cent."""

    min_fragmenters_chain: int = 6  # fragmenters of a chain
    duplicates: int = 70  # pages that agree in more of what they hold together begin no cluster
    min_nav_length: int = 80  # of the first pair's common part: what another page must share to join
    least_nav_length: int = 40  # the last value that it is lowered to
    nav_length_step: int = 20
    cluster_pages: int = 4  # a smaller cluster is none


PUBLISHED = TemplateRules()


@dataclass(frozen=True, slots=True)
class TemplatePage:
    """One page, and how much of it is navigation."""

    url: Url
    title: str
    size_bytes: int  # of its source as UTF-8, without white space around tags
    navigation_bytes: int  # of these, in fragmenters that are navigation


@dataclass(frozen=True, slots=True)
class Template:
    """Pages that share their navigation."""

    pages: tuple[TemplatePage, ...]  # in the order in which they joined: the pair that it began with first
    chain_bytes: int  # length of the navigation part as the method measures it: of its chains, which overlap
    share: float  # of the pages' bytes that are navigation: the mean over pages, 0 to 1


@dataclass(frozen=True, slots=True)
class SiteTemplates:
    """A site's templates, largest first, and the pages that none took."""

    site: SiteKey
    method: str
    rules: TemplateRules
    templates: tuple[Template, ...]
    others: tuple[TemplatePage, ...]


class Run(NamedTuple):
    """Text of one part within a block."""

    text: str
    part: Part


class MarkedBlock(NamedTuple):
    """A block of a page's text with its parts; a method that judges whole blocks gives it one run."""

    kind: BlockKind
    level: int  # of a heading: 1 to 6
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """A page as it is shown for judging by eye."""

    page: TemplatePage
    template: int  # its place among the site's templates; -1: none took it
    blocks: tuple[MarkedBlock, ...]
