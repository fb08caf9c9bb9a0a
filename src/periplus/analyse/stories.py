"""Which pages tell the same story?

Pages that share text, confirmed by rare words and by their dates or titles, are copies; a page that links to another site's page joins that
page's story. A page belongs to one story at most: of several that it shares text with or links to, the one whose words it shares most. One
that has parts of several stories and stands out for none is a digest; it joins none, else weekly lists of links would make all stories one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from periplus.analyse.story_edges import Groups, Pair, edges
from periplus.analyse.story_order import ordered_story
from periplus.analyse.story_pages import Article
from periplus.analyse.story_pairs import Words, text_pairs
from periplus.model.story import DateSource, Stories, Story
from periplus.model.web import SiteKey

LEAST_SITES = 2  # on one site there is nothing to spread


def find_stories(articles: Sequence[Article], links: Iterable[Pair], *, least_sites: int = LEAST_SITES) -> Stories:
    """The stories among the pages, the weightiest first. links: (citing, cited) places in articles, templates' own left out."""
    words = Words(articles)
    cites = sorted({(citing, cited) for citing, cited in links if articles[citing].site != articles[cited].site})
    found = edges(articles, text_pairs(articles), cites, words)
    groups = Groups(len(articles), (*found.copies, *found.citations))
    members: dict[int, list[int]] = defaultdict(list)
    for page in range(len(articles)):
        members[groups.of(page)].append(page)
    place = {page: at for pages in members.values() for at, page in enumerate(pages)}
    cited_in, shared_in = _by_group(cites, groups), _by_group(found.copies, groups)
    stories = []
    for group, pages in members.items():
        if len(pages) > 1 and len({articles[page].site for page in pages}) >= least_sites:
            inner = [(place[citing], place[cited]) for citing, cited in cited_in[group]]
            alike = {(place[one], place[other]): found.copies[one, other] for one, other in shared_in[group]}
            stories.append(ordered_story([articles[page] for page in pages], inner, alike))
    return _stories(articles, stories, found.digests)


def _by_group(pairs: Iterable[Pair], groups: Groups) -> dict[int, list[Pair]]:
    """The pairs that lie within one group."""
    found: dict[int, list[Pair]] = defaultdict(list)
    for one, other in pairs:
        if (group := groups.of(one)) == groups.of(other):
            found[group].append((one, other))
    return found


def _stories(articles: Sequence[Article], stories: list[Story], digests: Iterable[int]) -> Stories:
    stories.sort(key=lambda story: (-len(story.sites), -len(story.pages), -story.pages[0].date.when, story.pages[0].url))
    posts: dict[SiteKey, int] = defaultdict(int)
    dated: dict[DateSource, int] = defaultdict(int)
    for article in articles:
        posts[article.site] += 1
        dated[article.date.source] += 1
    return Stories(
        stories=tuple(stories),
        pages=len(articles),
        digests=tuple(sorted(articles[page].url for page in digests)),
        dated=tuple((source, dated[source]) for source in DateSource if source in dated),
        posts=tuple(sorted(posts.items())),
    )
