"""Functions of `import periplus`, each of which does what one command does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from periplus.api.collection import Collection
from periplus.api.homes import folder_of
from periplus.errors import UsageError
from periplus.store.database_address import is_address

if TYPE_CHECKING:  # imported by the functions that need them
    from periplus_topics.model import Influence, KeywordList, Stories


def stories(
    folder: Path | str, *, least_sites: int = 2, watch: Callable[[str, int, int], None] = lambda what, done, total: None
) -> Stories:
    """Stories that several sites of a collection share, most important first, as in `periplus stories`.

    least_sites: minimum number of sites per story. watch: called with (step, done, total). Raises NoCollection,
    StoreError.
    """
    from periplus_topics.api.stories import stories_of

    return stories_of(folder_of(folder), least_sites=least_sites, watch=watch)


def influence(
    source: Path | str | Stories,
    *,
    objective: str = "dl",
    budget: float = 20,
    by_posts: bool = False,
    for_future: bool = False,
) -> Influence:
    """The best sites to read, best first, as in `periplus influence`.

    source: stories, a collection's folder, or a file of cascades (one story per line, `site,hours site,hours ...`).
    objective: `dl` (detection likelihood), `dt` (detection time), `pa` (population affected). budget: number of sites;
    with by_posts, number of posts, or below 1 their share. for_future: optimise for future stories. Raises UsageError.
    """
    from periplus_topics.api.stories import ReadingRequest, cascades_from, stories_of
    from periplus_topics.api.stories import influence as chosen
    from periplus_topics.model import Objective

    if objective not in (choices := [choice.value for choice in Objective]):
        raise UsageError(f"unknown objective {objective!r}: choose among {', '.join(choices)}")
    given: Any = source
    if isinstance(source, (str, Path)):
        is_collection = is_address(str(source)) or Path(source).is_dir()
        given = stories_of(folder_of(source)) if is_collection else cascades_from(Path(source))
    return chosen(given, ReadingRequest(Objective(objective), budget, by_posts, for_future))


def keywords(
    folder: Path | str,
    *targets: str,
    query: str | None = None,
    most: int = 10,
    method: str = "learnt",
    watch: Callable[[int], None] = lambda pages: None,
) -> KeywordList:
    """Keywords of a site, of pages or of search results: see `Collection.keywords`. Raises UsageError, NoCollection."""
    with Collection(folder_of(folder)) as collection:
        result: KeywordList = collection.keywords(*targets, query=query, most=most, method=method, watch=watch)
    return result
