"""URL rules proposed from fetched pages: evidence, refusals, and the effect on a site with known aliases."""

from periplus.analyse.equivalences import DifferenceVerdict, SeenPage, propose, rules_text
from periplus.urls.aliases import Difference, differences_between, place, words
from periplus.urls.canonical import canonical
from periplus.urls.parameters import apply, rules_of

SITE = "http://a.test"


def page(path, text, shingles=None):
    return SeenPage(canonical(path if "://" in path else SITE + path), text.encode(), shingles)


def known_site():
    """(page, name of its content) of a site with every kind of alias: 40 articles of 6 URLs, 10 pages of 4, a list."""
    for number in range(40):
        name = f"article {number}"
        yield page(f"/view.php?id={number}", name), name
        yield page(f"/view.php?id={number}&sid=a{number}f3c9", name), name
        yield page(f"/view.php?sid=b{number}77ac&id={number}", name), name
        yield page(f"/view.php?id={number}&utm_source=mail", name), name
        yield page(f"/view.php?id={number}&print=1", name), name
        yield page(f"/view.php?print=1&id={number}&sid=c{number}0d1e", name), name
    for number in range(10):
        name = f"folder {number}"
        for host in (SITE, "http://www.a.test"):
            yield page(f"{host}/docs/part{'abcdefghij'[number]}/", name), name
        yield page(f"/docs/part{'abcdefghij'[number]}", name), name
        yield page(f"/docs/part{'abcdefghij'[number]}/index.html", name), name
    for order in ("price", "name"):
        for number in range(8):
            name = f"list {number} by {order}"
            yield page(f"/list.php?page={number}&order={order}", name), name
            yield page(f"/list.php?order={order}&page={number}", name), name


def test_proposed_rules_remove_all_aliases_and_lose_no_page():
    seen = list(known_site())
    proposals = propose(page for page, _ in seen)
    rules = rules_of(rules_text(proposals))
    contents: dict[str, set[str]] = {}
    for page, name in seen:
        url = apply(page.url, rules).url
        assert url is not None
        contents.setdefault(url, set()).add(name)
    assert all(len(names) == 1 for names in contents.values())  # no page lost
    truth = len({name for _, name in seen})
    saved = (len(seen) - len(contents)) / (len(seen) - truth)
    assert saved >= 0.9, (saved, rules_text(proposals))


def test_the_evidence_names_parameters_that_never_or_always_changed_the_text():
    sentences = [proposal.sentence for proposal in propose(page for page, _ in known_site())]
    assert any(
        line.startswith("sid (a session or campaign) on a.test/view.php: never changed the text") for line in sentences
    ), sentences
    assert any(line.startswith("id on a.test/view.php: always changed the text") for line in sentences), sentences
    assert any(line.startswith("order on a.test/list.php: always changed") for line in sentences), sentences


def test_the_order_of_pages_does_not_matter():
    seen = [page for page, _ in known_site()]
    assert propose(seen) == propose(reversed(seen))


def test_a_single_contradiction_prevents_a_rule():
    seen = [page(f"/a{letter}?lang={lang}", f"text {letter}") for letter in "bcdefgh" for lang in ("en", "de")]
    assert [found.verdict for found in propose(seen)] == [DifferenceVerdict.SAME]
    seen += [page("/az?lang=en", "text"), page("/az?lang=de", "Text")]
    found = propose(seen)
    assert [(proposal.verdict, proposal.same, proposal.different) for proposal in found] == [
        (DifferenceVerdict.DIFFERENT, 7, 1)
    ]
    assert rules_text(found) == ""


def test_too_few_pairs_or_a_single_text_prevent_a_rule():
    few = [page(f"/a{letter}?x={value}", f"text {letter}") for letter in "bcde" for value in (1, 2)]
    alike = [page(f"/view.php?id={number}&x={value}", "please log in") for number in range(20) for value in (1, 2)]
    for seen in (few, alike):
        assert {found.verdict for found in propose(seen) if Difference("parameter", "x") in found.differences} <= {
            DifferenceVerdict.UNKNOWN
        }
        assert rules_text(propose(seen)) == ""


def test_two_parameters_that_change_in_every_link_are_judged_together():
    seen = [
        page(f"/p{letter}?t=17000{number}{at}&s=x{at}{number}", f"text {letter}")
        for number, letter in enumerate("bcdefgh")
        for at in (1, 2)
    ]
    (found,) = propose(seen)
    assert found.differences == {Difference("parameter", "s"), Difference("parameter", "t")}
    assert found.verdict is DifferenceVerdict.SAME


def test_pairs_with_further_differences_are_no_evidence():
    seen = [
        page(f"http://{host}a.test/docs/{letter}", f"text {letter}") for letter in "bcdefgh" for host in ("", "www.")
    ]
    seen += [
        page(f"http://{host}a.test/view.php?id={number}{more}", f"text {number}")
        for number in range(8)
        for host, more in (("", ""), ("www.", "&print=1"))
    ]
    found = propose(seen)
    assert not any(
        Difference("parameter", "print") in one.differences for one in found if one.place == "/docs/*" and one.same
    )


def test_a_similar_print_version_is_reported_without_a_rule():
    whole = [frozenset(range(100 * number, 100 * number + 60)) for number in range(8)]
    seen = [page(f"/view.php?id={number}", f"a{number}", shingles) for number, shingles in enumerate(whole)]
    seen += [
        page(f"/view.php?id={number}&print=1", f"b{number}", frozenset(sorted(shingles)[5:45]))
        for number, shingles in enumerate(whole)
    ]
    found = [proposal for proposal in propose(seen) if proposal.differences == {Difference("parameter", "print")}]
    assert [proposal.verdict for proposal in found] == [DifferenceVerdict.NEAR]
    assert rules_text(found) == ""


def test_a_script_without_evidence_is_excluded_from_its_folders_rule():
    seen = [page(f"/a{letter}?v={value}", f"text {letter}") for letter in "bcdefgh" for value in (1, 2)]
    seen += [page("/calc.php?id=1&v=1", "one"), page("/calc.php?id=1&v=2", "two")]
    rules = rules_of(rules_text(propose(seen)))
    assert apply(canonical(SITE + "/ab?v=1"), rules).url == SITE + "/ab"
    assert apply(canonical(SITE + "/calc.php?id=1&v=1"), rules).url == SITE + "/calc.php?id=1&v=1"


def test_the_differences_of_two_urls_are_named_if_they_can_be_aliases():
    def difference(first, second):
        found = differences_between(canonical(first), canonical(second))
        return None if found is None else words(found)

    assert difference("http://a.cz/x?a=1&b=2", "http://a.cz/x?b=2&a=1") == "the order of parameters"
    assert difference("http://www.a.cz/x/", "https://a.cz/x") == "a last slash, http or https, www."
    assert difference("http://a.cz/d/index.html", "http://a.cz/d/") == "index.html"
    assert difference("http://a.cz/d;s=1?a=1&a=2", "http://a.cz/d;s=2?a=2&a=1") == ";s, a"
    assert difference("http://a.cz/x", "http://a.cz/y") is None
    assert difference("http://a.cz/x", "http://a.cz/x") is None


def test_a_rule_applies_to_its_script_or_its_folder():
    sid = {Difference("parameter", "sid")}
    assert place(canonical("http://a.cz/d/view.php?id=1&sid=2"), sid) == "/d/view.php"
    assert place(canonical("http://a.cz/d/about?sid=2"), sid) == "/d/*"
    assert place(canonical("http://a.cz/d/news-12.html?sid=2"), sid) == "/d/news-*.html"
    assert place(canonical("http://a.cz/d/about/"), {Difference("slash")}) == "/**"
