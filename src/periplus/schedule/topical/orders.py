"""How promising is each page that waits? Known ways of ordering them, to be measured against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from periplus.schedule.topical.seen import Floats, Numbers, Seen

Order = Callable[[Seen, Numbers], Floats]  # the promise of each of these pages: the greatest is next


def breadth_first(seen: Seen, numbers: Numbers) -> Floats:
    """As they were met."""
    return -numbers.astype(np.float64)


def best_parent(seen: Seen, numbers: Numbers) -> Floats:
    """Best first, as published: by the best page that links to it."""
    return seen.worth_most[numbers] - 1e-9 * numbers


def all_parents(seen: Seen, numbers: Numbers) -> Floats:
    """By the mean over all pages that link to it, and how many they are."""
    links = seen.links[numbers]
    found: Floats = (seen.worth_sum[numbers] + 0.5 * seen.prior) / (links + 0.5) + 0.05 * np.log1p(links) + (links == 0) - 1e-9 * numbers
    return found


def shark(seen: Seen, numbers: Numbers) -> Floats:
    """Half by what it inherits along links, half by what these links say."""
    return 0.5 * seen.credit[numbers] + 0.5 * seen.promise[numbers] - 1e-9 * numbers


def of_site(seen: Seen, numbers: Numbers) -> Floats:
    """By what its site's pages were worth so far."""
    prior = np.full(len(numbers), seen.prior)
    return seen.of_host.mean(seen.host[numbers], prior, 2.0) + 1e-3 * seen.worth_most[numbers] - 1e-9 * numbers


ORDERS: dict[str, Order] = {
    "breadth": breadth_first,
    "best-first": best_parent,
    "parents": all_parents,
    "shark": shark,
    "site": of_site,
}
