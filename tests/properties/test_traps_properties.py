"""Properties of TrapDetector and of URL patterns for any input."""

from __future__ import annotations

import random
from array import array

from hypothesis import example, given, settings
from hypothesis import strategies as st

from periplus.model.frontier import TrapMemory
from periplus.model.web import Url
from periplus.schedule.shown_lines import NOTHING, WORDS, LineMemory
from periplus.schedule.traps import GENERATION, MAX_PATTERNS, TrapDetector
from periplus.urls.url_patterns import ROOT, plain, url_patterns
from unit.test_traps import HOST, Host, Past, Web, candidate, crawl, document

SEGMENT = st.sampled_from(["a", "b", "c", "1", "22", "x7", "%D0%9F", "", "page.html", "0123456789abcdef01"])
PARAMETER = st.sampled_from(["a=1", "b=2", "page=3", "sid=0123456789ab", "k=0123456789abcdef01", "bare", "=", ""])
PATHS = st.builds(
    lambda segments, parameters: Url(
        HOST + "/" + "/".join(segments) + ("?" + "&".join(parameters) if parameters else "")
    ),
    st.lists(SEGMENT, max_size=9),
    st.lists(PARAMETER, max_size=4),
)
EVERY = array("i")  # no numbers of blocks, so that every line is read
PAGES = st.tuples(
    PATHS,
    st.sampled_from(["", "menu", "menu\nred shirts", "some longer words never seen before " * 5])
    | st.text(max_size=60),
    st.lists(PATHS, max_size=4),
)


@given(st.text(max_size=80))
def test_any_text_has_families_that_end_in_the_host(text):
    found = url_patterns(Url("https://w.example/" + text))
    assert found[-1] == ROOT
    assert len(found) <= 9


@given(PATHS)
def test_plain_is_idempotent(url):
    assert plain(plain(url).url).names == ""


def site(seed: int) -> Web:
    """A site of about 60 pages with a random endless part: random links, texts and evidence."""
    chance = random.Random(seed)
    folders = ["", "a/", "a/b/", "c/", "d/1/"]
    pages = {f"/{chance.choice(folders)}{chance.choice('pqrs')}{number}": chance.random() for number in range(60)}
    names = list(pages)
    links = {name: chance.sample(names, chance.randint(1, 4)) for name in names}
    form = chance.choice(["/t?n={}", "/t/{}/", "/t/x{}", "/a/t?n={}&view=2", "/t/{}/day"])
    step = chance.randint(1, 4)

    def part(path: str) -> tuple[str, list[str]] | None:
        if path == "/":
            return "welcome " * 20, [*names[:3], form.format(1)]
        if path in pages:
            text = " ".join(
                random.Random(path).choice(["lorem", "ipsum", "dolor", "amet"]) + path[-1] for _ in range(3)
            )
            words = "".join(random.Random(path).choice("abcdefghij") for _ in range(140))
            return text + ("\n" + words if pages[path] < 0.6 else ""), links[path]
        head, _, tail = form.partition("{}")
        number = path.removeprefix(head).removesuffix(tail)
        if path.startswith(head) and number.isdigit():
            return "nothing here", [form.format(int(number) * step + child) for child in range(1, step + 1)]
        return None

    return Web(part)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 12]), st.lists(st.integers(1, 150), max_size=8))
@example(0, 3, [1, 2, 3])
@example(195158, 1, [8])
def test_whenever_it_is_killed_a_crawl_reads_the_same_pages(seed, window, kills):
    """The order of doubtful URLs depends on rounds, which restart."""
    whole = crawl(site(seed), window, limit=400)
    assert sorted(crawl(site(seed), window, limit=400, kills=kills)) == sorted(whole)


@settings(max_examples=60, deadline=None)
@given(st.lists(PAGES, max_size=60), st.sampled_from([1, 3, 40]), st.integers(0, 1))
def test_same_calls_same_answers_and_listed_pages_without_query_stay(pages, window, doubt):
    twins = [TrapDetector(window, 100, TrapMemory(), Past(Host())) for _ in range(2)]
    for url, text, links in pages:
        understood, candidates = document(url, text, links), tuple(map(candidate, dict.fromkeys(links)))
        assert len({watch.admit(url, doubt) for watch in twins}) == 1
        assert plain(url).names or doubt or window < 40 or twins[0].admit(url, 0) is None
        lessons = [watch.learn(url, doubt, understood, candidates) for watch in twins]
        assert lessons[0] == lessons[1]
    first, second = (watch.changes() for watch in twins)
    assert first == second
    assert all(0 <= record.dull <= record.idle for record in first.patterns)


@settings(max_examples=40, deadline=None)
@given(st.lists(PAGES, max_size=40))
def test_window_0_refuses_nothing_and_learns_nothing(pages):
    watch = TrapDetector(0, 100, TrapMemory(), Past(Host()))
    for url, text, links in pages:
        watch.learn(url, 3, document(url, text, links), tuple(map(candidate, links)))
        assert watch.admit(url, 3) is None
    assert not watch.changes()


@given(st.text())
def test_repeated_text_is_not_new(text):
    memory, written = LineMemory(10**6, 0, ()), text.lower().encode("utf-8", "replace")
    for _ in range(2):
        memory.read(written, b"", EVERY, b"", 1000)
    memory.take_new()
    assert memory.read(written, b"", EVERY, b"", 1000) == NOTHING
    assert not memory.take_new()


@given(st.lists(st.sampled_from(["oak", "elm", "ash", "7", "8:30"]), min_size=1, max_size=9), st.integers(0, 9))
def test_lines_of_words_of_the_address_are_not_new(words, number):
    memory = LineMemory(1000, 0, ())
    written = " ".join(words).encode()
    assert memory.read(written, b"x/" + written, EVERY, b"", 10) == NOTHING
    assert memory.read(written + b" yew", written, EVERY, b"", 10) == WORDS
    assert memory.read(written + b" fir", b"", array("i", [0]), b"\0", 10) == NOTHING


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=30), max_size=12), st.integers(1, 20))
def test_which_lines_are_in_memory_follows_from_their_sequence(pages, generation):
    """Equal to a plain list of keys, also when part of the sequence is undone."""
    memory, sequence, young, old = LineMemory(generation, 0, ()), [], set(), set()
    for page in pages:
        expected = []
        for line in page:
            if line not in young:
                expected += [line] if line not in old else []
                sequence.append(line)
                young.add(line)
                if len(sequence) % generation == 0:
                    young, old = set(), young
        written = "\n".join(f"line {number:c}" for number in map((100).__add__, page)).encode()
        assert memory.adds(written) == bool(expected)
    keys = list(memory.take_new())
    first = max(0, len(keys) // generation - 1) * generation
    again = LineMemory(generation, first, array("I", keys[first:]))
    every = "\n".join(f"line {number + 100:c}" for number in range(41)).encode()
    assert again.adds(every) == memory.adds(every)
    assert again.shown == memory.shown


def test_pages_fetched_under_another_session_are_not_doubtful():
    watch = TrapDetector(10, 1000, TrapMemory(), Past(Host()))
    for number in range(12):
        url = f"{HOST}/a{number}?sid={number:016x}"
        watch.learn(Url(url), 1, document(url, ""), (candidate(f"{HOST}/a{number}?sid={number + 100:016x}"),))
    assert "under another sid" in (watch.admit(Url(f"{HOST}/a3?sid={'7' * 16}"), 1) or "")
    assert (watch.admit(Url(f"{HOST}/a99?sid={'7' * 16}"), 1) or "").startswith("/a*: ")


def test_memory_is_bounded():
    watch = TrapDetector(10, 100, TrapMemory(), Past(Host()))
    for number in range(3 * MAX_PATTERNS):
        word = "".join(chr(97 + int(digit)) for digit in str(number))
        watch.learn(
            Url(f"{HOST}/{word}/x"),
            1,
            document(f"{HOST}/{word}/x", "\n".join(word + letter for letter in "abcdefghijklmnop")),
            (),
        )
    assert len(watch._series) <= MAX_PATTERNS + 2
    assert watch._lines.young.count + watch._lines.old.count <= 2 * GENERATION
