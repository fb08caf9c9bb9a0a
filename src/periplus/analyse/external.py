"""Which links lead nowhere, and which to other domains? The two lists of the site mapper (Rimnac, Susta, Zivnustka), exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LinksOfDomains:
    """u URLs, m links between them by place."""

    domain: NDArray[np.int64]  # u: a number a domain (or a site): equal numbers, one domain
    indexed: Mask  # u: fetched and analysed
    invalid: Mask  # u: not there; by verdict where there is one
    sources: Places  # m
    targets: Places  # m


@dataclass(frozen=True, slots=True)
class ExternalDomains:
    """k other domains, most linking pages first, equal ones by number."""

    domain: NDArray[np.int64]  # k
    links: NDArray[np.int64]  # k: rows of links that lead there
    pages: NDArray[np.int64]  # k: distinct pages with such links
    targets: NDArray[np.int64]  # k: distinct URLs linked to
    rows: Places  # indices of all these links, domain by domain in this order, then by target and source
    offsets: Places  # k + 1: the rows of domain i are rows[offsets[i]:offsets[i + 1]]


def invalid_links(known: LinksOfDomains) -> Places:
    """Indices of the links from an indexed page to an invalid URL, by target, then source. O(m log m)."""
    rows = np.flatnonzero(known.indexed[known.sources] & known.invalid[known.targets])
    return rows[np.lexsort((known.sources[rows], known.targets[rows]))]


def external_domains(known: LinksOfDomains) -> ExternalDomains:
    """The links from an indexed page to a URL of another domain that is not invalid, grouped by that domain. O(m log m).

    An invalid URL is an error of the site, hence never listed as external.
    """
    outward = known.domain[known.sources] != known.domain[known.targets]
    rows = np.flatnonzero(outward & known.indexed[known.sources] & ~known.invalid[known.targets])
    domain = known.domain[known.targets[rows]]
    names, group, links = np.unique(domain, return_inverse=True, return_counts=True)
    pages = _distinct(group, known.sources[rows], len(names))
    targets = _distinct(group, known.targets[rows], len(names))
    order = np.lexsort((names, -pages))
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    grouped = rows[np.lexsort((known.sources[rows], known.targets[rows], rank[group]))]
    offsets = np.concatenate(([0], np.cumsum(links[order])))
    return ExternalDomains(names[order], links[order], pages[order], targets[order], grouped, offsets)


def _distinct(group: Places, values: Places, groups: int) -> NDArray[np.int64]:
    """How many different values each group has."""
    if not len(values):
        return np.zeros(groups, np.int64)
    span = int(values.max()) + 1
    return np.bincount(np.unique(group * span + values) // span, minlength=groups)
