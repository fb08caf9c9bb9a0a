"""What is linked among many sites: documents, links between units, what pages yielded, as arrays?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from periplus.model.survey import DocumentModel, Unit

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WebFragment:
    """n units, the target set first; u documents, each of one unit; m distinct links from fetched documents to others.

    A document is a page after redirects, http and https, `www.` and its lack, and pages of equal content within a unit were merged.
    """

    units: tuple[Unit, ...]
    chosen: int  # the first so many units are the target set
    ids: Ints  # u: ids of the URLs that stand for the documents, ascending
    unit: Numbers  # u: places in units
    directory: Numbers  # u: a number a directory, each of one unit
    host: Numbers  # u: a number a host (www. left out), each of one unit
    fetched: Mask  # u
    waiting: Mask  # u: known, not fetched, and neither refused nor forbidden nor dead
    sources: Ints  # m: places of documents, ascending
    ends: Ints  # m: the same, ascending within a source
    merged: int  # URLs that stand for no document of their own: fetched pages of a content that another has

    @property
    def is_target(self) -> Mask:
        """u: whether the document's unit is of the target set."""
        return self.unit < self.chosen


@dataclass(frozen=True, slots=True)
class UnitLinks:
    """Links between units under one document model: k pairs of units, self-links among them, by source, then end."""

    model: DocumentModel
    sources: Numbers
    ends: Numbers
    counts: Ints  # distinct pairs of documents


@dataclass(frozen=True, slots=True)
class HarvestRows:
    """What pages yielded, in the order of fetching: p pages of some sites, q distinct pairs of a page and an item on it.

    An item is what the survey harvests: an external page, host or registered domain.
    """

    sites: tuple[str, ...]
    known: Ints  # pages known of each site, fetched or waiting to be
    site: Numbers  # p: places in sites
    page: Ints  # q: places of pages, ascending
    item: Ints  # q: a number an item, from 0
