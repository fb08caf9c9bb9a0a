"""Aliases learned while crawling, in simulated crawls of a site with known aliases."""

from collections import deque

from doubled import Site
from periplus.schedule.learning import AliasLearner
from periplus.urls.canonical import canonical


def crawl(site, learner=None):
    """(URLs fetched in order, names reached)."""
    queue, known = deque([canonical("http://a.test/")]), {canonical("http://a.test/")}
    fetched, names = [], set()
    while queue:
        url = queue.popleft()
        if learner and learner.target_of(url).url != url:
            continue
        fetched.append(url)
        name = site.name(url)
        names.add(name)
        for link in map(canonical, site.links(name)):
            if link not in known and (learner is None or learner.target_of(link).url == link):
                known.add(link)
                queue.append(link)
        for retraction in learner.learn(url, name.encode()) if learner else ():
            queue.extend(retraction.urls)
            known.update(retraction.urls)
    return fetched, names


def test_learning_saves_nine_tenths_of_duplicate_fetches_and_loses_no_page():
    for seed in (1, 2):
        site = Site(seed, size=8)
        plain, everything = crawl(site)
        learned, reached = crawl(site, AliasLearner())
        assert reached == everything
        saved = 1 - (len(learned) - len(everything)) / (len(plain) - len(everything))
        assert saved >= 0.9


def test_parameters_that_select_pages_are_never_ignored():
    learner = AliasLearner()
    crawl(Site(), learner)
    assert not any(
        "id" in name.split(" on ")[0].split(", ") or "order," in name or "page" in name.split(" on ")[0]
        for name in learner.findings
    )


def test_a_retracted_finding_restores_the_skipped_urls():
    learner = AliasLearner(confirmations=2)
    letters = "bcdefghijk"
    for letter in letters[:3]:
        for lang in ("en", "de"):
            assert learner.learn(canonical(f"http://a.test/{letter}?lang={lang}"), letter.encode()) == ()
    assert learner.findings == ("learned: lang on /*",)
    learner.learn(canonical("http://a.test/x?lang=en"), b"x english")
    skipped = canonical("http://a.test/x?lang=de")
    assert learner.target_of(skipped).url == "http://a.test/x?lang=en"
    (retraction,) = learner.learn(skipped, b"x deutsch")
    assert (retraction.finding, retraction.urls) == ("learned: lang on /*", (skipped,))
    assert learner.findings == ()
    assert learner.target_of(canonical("http://a.test/x?lang=fr")).url == "http://a.test/x?lang=fr"


def test_probes_detect_a_wrong_finding():
    """Ten pages ignore `lang` and fifty do not. No page is lost."""
    learner = AliasLearner()
    truth = {
        f"http://a.test/p{number:02}x?lang={lang}".translate(str.maketrans("0123456789", "abcdefghij")): (
            number,
            lang if number >= 10 else "",
        )
        for number in range(60)
        for lang in ("en", "de", "fr")
    }
    queue, seen = deque(sorted(map(canonical, truth))), set()
    while queue:
        url = queue.popleft()
        if learner.target_of(url).url == url:
            seen.add(truth[url])
            for retraction in learner.learn(url, str(truth[url]).encode()):
                queue.extend(retraction.urls)
    assert seen == set(truth.values())


def test_pages_with_the_same_text_give_no_finding():
    learner = AliasLearner()
    for number in range(50):
        learner.learn(canonical(f"http://a.test/view.php?id={number}"), b"please log in")
    assert learner.findings == ()
    assert learner.target_of(canonical("http://a.test/view.php?id=99")).url == "http://a.test/view.php?id=99"


def test_two_parameters_that_change_together_are_learned_together():
    learner = AliasLearner()
    for number in range(10):
        for at in (1, 2):
            learner.learn(
                canonical(f"http://a.test/view.php?id={number}&t=17{number}{at}&s=x{at}{number}"), b"%d" % number
            )
    assert learner.findings == ("learned: s, t on /view.php",)
    assert (
        learner.target_of(canonical("http://a.test/view.php?s=z&id=3&t=1")).url
        == "http://a.test/view.php?id=3&t=1731&s=x13"
    )


def test_without_a_confirmed_finding_a_url_is_unchanged():
    learner = AliasLearner()
    url = canonical("http://a.test/a?sid=1")
    learner.learn(canonical("http://a.test/a"), b"a")
    assert learner.target_of(url).url is url


def test_learning_is_deterministic():
    def taught():
        learner = AliasLearner()
        return crawl(Site(2, size=6), learner)[0], learner.findings

    assert taught() == taught()
