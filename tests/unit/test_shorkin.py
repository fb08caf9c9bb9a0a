"""Shorkin's method on small synthetic sites."""

from periplus.analyse.marked_text import marked_blocks, text_of
from periplus.analyse.shorkin import (
    chains,
    clusters_of,
    fragments,
    is_covered,
    navigation_of,
)
from periplus.model.duplicates import TemplateRules

RULES = TemplateRules()


def page(template, own):
    menu = "".join(f"<li><a href='/{template}{at}'>{template} item {at}</a></li>" for at in range(8))
    text = "".join(f"<p>{own} says {at}</p>" for at in range(9))
    return f"<body><ul>{menu}</ul><div>{text}</div><p class={template}><a>{template} foot</a><i>end</i></p></body>"


def sets(pages):
    return [chains(fragments(source)) for source in pages]


def test_pages_of_two_templates_form_two_clusters():
    pages = [page("ab"[at % 2], f"page{at}") for at in range(10)] + ["<p>alone</p>"]
    found = clusters_of(sets(pages), RULES)
    assert sorted(sorted(cluster.pages) for cluster in found) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_navigation_is_removed_and_content_kept():
    pages = [page("a", f"page{at}") for at in range(5)]
    found = clusters_of(sets(pages), RULES)
    pieces = fragments(pages[3])
    left = text_of(marked_blocks(pieces, is_covered(chains(pieces), navigation_of(5, found)[3])))
    assert left.splitlines() == [f"page3 says {at}" for at in range(9)]


def test_three_pages_are_no_cluster():
    assert clusters_of(sets([page("a", f"page{at}") for at in range(3)]), RULES) == []


def test_no_pages_have_no_clusters():
    assert clusters_of([], RULES) == []
    assert clusters_of(sets([""] * 5), RULES) == []


def test_the_navigation_of_all_clusters_is_removed_from_other_pages():
    pages = [page("ab"[at % 2], f"page{at}") for at in range(10)]
    odd = page("a", "odd").replace("<div>", "<h1>many</h1>" * 40 + "<div>")
    held = sets([*pages, odd])
    found = clusters_of(held[:10], RULES)
    alone = navigation_of(11, found)[10]
    assert set(alone.tolist()) == set(found[0].navigation.tolist()) | set(found[1].navigation.tolist())


def test_equal_pages_do_not_start_a_cluster():
    """They have everything in common; the published method excludes them as duplicates."""
    assert clusters_of(sets([page("a", "same")] * 6), RULES) == []
