"""Rules proposed from what was fetched: what is found, what is refused,
and what a proposal saves on a site whose truth is known.
"""

from periplus.analyse.equivalences import DifferenceVerdict, SeenPage, propose, rules_text
from periplus.urls.aliases import Difference, differences_between, place, words
from periplus.urls.canonical import canonical
from periplus.urls.parameters import apply, rules_of

SITE = "http://a.test"


def page(path, text, shingles=None):
    return SeenPage(canonical(path if "://" in path else SITE + path), text.encode(), shingles)


def known_site():
    """(page, name of its content) of a site with every kind of double; 40 articles of 6 spellings, 10 pages of 4,
    a sorted list.
    """
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


def test_on_a_known_site_no_page_is_lost_and_all_doubles_go():
    seen = list(known_site())
    proposals = propose(page for page, _ in seen)
    rules = rules_of(rules_text(proposals))
    contents: dict[str, set[str]] = {}
    for one, name in seen:
        url = apply(one.url, rules).url
        assert url is not None
        contents.setdefault(url, set()).add(name)
    assert all(len(names) == 1 for names in contents.values())  # no page lost
    truth = len({name for _, name in seen})
    saved = (len(seen) - len(contents)) / (len(seen) - truth)
    assert saved >= 0.9, (saved, rules_text(proposals))


def test_the_evidence_says_what_never_mattered_and_what_always_did():
    said = [proposal.sentence for proposal in propose(page for page, _ in known_site())]
    assert any(
        line.startswith("sid (a session or campaign) on a.test/view.php: never changed the text") for line in said
    ), said
    assert any(line.startswith("id on a.test/view.php: always changed the text") for line in said), said
    assert any(line.startswith("order on a.test/list.php: always changed") for line in said), said


def test_the_order_of_pages_does_not_matter():
    seen = [page for page, _ in known_site()]
    assert propose(seen) == propose(reversed(seen))


def test_one_contradiction_prevents_a_rule():
    seen = [page(f"/a{letter}?lang={lang}", f"text {letter}") for letter in "bcdefgh" for lang in ("en", "de")]
    assert [found.verdict for found in propose(seen)] == [DifferenceVerdict.SAME]
    seen += [page("/az?lang=en", "text"), page("/az?lang=de", "Text")]
    found = propose(seen)
    assert [(one.verdict, one.same, one.different) for one in found] == [(DifferenceVerdict.DIFFERENT, 7, 1)]
    assert rules_text(found) == ""


def test_too_few_pairs_or_only_one_text_prevent_a_rule():
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


def test_pairs_that_differ_in_something_else_are_no_evidence():
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


def test_a_print_version_without_the_menu_is_shown_to_a_person_and_is_no_rule():
    whole = [frozenset(range(100 * number, 100 * number + 60)) for number in range(8)]
    seen = [page(f"/view.php?id={number}", f"a{number}", shingles) for number, shingles in enumerate(whole)]
    seen += [
        page(f"/view.php?id={number}&print=1", f"b{number}", frozenset(sorted(shingles)[5:45]))
        for number, shingles in enumerate(whole)
    ]
    found = [one for one in propose(seen) if one.differences == {Difference("parameter", "print")}]
    assert [one.verdict for one in found] == [DifferenceVerdict.NEAR]
    assert rules_text(found) == ""


def test_a_script_in_which_nothing_was_proven_is_kept_from_its_folders_rule():
    seen = [page(f"/a{letter}?v={value}", f"text {letter}") for letter in "bcdefgh" for value in (1, 2)]
    seen += [page("/calc.php?id=1&v=1", "one"), page("/calc.php?id=1&v=2", "two")]
    rules = rules_of(rules_text(propose(seen)))
    assert apply(canonical(SITE + "/ab?v=1"), rules).url == SITE + "/ab"
    assert apply(canonical(SITE + "/calc.php?id=1&v=1"), rules).url == SITE + "/calc.php?id=1&v=1"


def test_differences_are_told_in_differences_or_not_at_all():
    def told(one, other):
        found = differences_between(canonical(one), canonical(other))
        return None if found is None else words(found)

    assert told("http://a.cz/x?a=1&b=2", "http://a.cz/x?b=2&a=1") == "the order of parameters"
    assert told("http://www.a.cz/x/", "https://a.cz/x") == "a last slash, http or https, www."
    assert told("http://a.cz/d/index.html", "http://a.cz/d/") == "index.html"
    assert told("http://a.cz/d;s=1?a=1&a=2", "http://a.cz/d;s=2?a=2&a=1") == ";s, a"
    assert told("http://a.cz/x", "http://a.cz/y") is None
    assert told("http://a.cz/x", "http://a.cz/x") is None


def test_a_finding_holds_for_its_script_or_its_folder():
    sid = {Difference("parameter", "sid")}
    assert place(canonical("http://a.cz/d/view.php?id=1&sid=2"), sid) == "/d/view.php"
    assert place(canonical("http://a.cz/d/about?sid=2"), sid) == "/d/*"
    assert place(canonical("http://a.cz/d/news-12.html?sid=2"), sid) == "/d/news-*.html"
    assert place(canonical("http://a.cz/d/about/"), {Difference("slash")}) == "/**"
