"""What TrapDetector and the patterns of URLs promise for any input."""

from __future__ import annotations

import random
import re
from array import array
from urllib.parse import quote

import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from periplus.model.frontier import TrapMemory
from periplus.model.web import Url
from periplus.schedule.shown_lines import LineMemory, key_of
from periplus.schedule.traps import (
    FRESH_LETTERS,
    GENERATION,
    MAX_PATTERNS,
    TrapDetector,
    _has_letters_beside,
    _letters_beside,
    _spelled,
)
from periplus.urls.canonical import canonical
from periplus.urls.url_patterns import ROOT, plain, url_patterns, with_wider
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


@given(PATHS)
def test_values_that_may_be_a_sessions_are_those_that_plain_takes_out(url):
    assert bool(plain(url).values) == bool(plain(url).names)


@given(PATHS)
def test_wider_families_of_a_short_path_are_its_own(url):
    found = url_patterns(url)
    if len(found) < 7 and ")+" not in found[0] and "//" not in url[8:]:
        assert with_wider(found[0]) == found


def site(seed: int) -> Web:
    """A site of some 60 pages and an endless part of its own kind: links, texts and what vouches for what are drawn."""
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


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 12]), st.lists(st.integers(1, 150), max_size=8))
@example(0, 3, [1, 2, 3])
@example(195158, 1, [8])
def test_whenever_it_is_killed_a_crawl_reads_the_same_pages(seed, window, kills):
    """In which order doubtful ones come is a matter of rounds, which begin anew."""
    whole = crawl(site(seed), window, limit=400)
    assert sorted(crawl(site(seed), window, limit=400, kills=kills)) == sorted(whole)


@settings(max_examples=60, deadline=None)
@given(st.lists(PAGES, max_size=60), st.sampled_from([1, 3, 40]), st.integers(0, 3))
def test_same_calls_same_answers_and_nothing_vouched_for_is_refused(pages, window, doubt):
    twins = [TrapDetector(window, TrapMemory(), Past(Host())) for _ in range(2)]
    for url, text, links in pages:
        understood, candidates = document(url, text, links), tuple(map(candidate, dict.fromkeys(links)))
        assert len({watch.admit(url, doubt) for watch in twins}) == 1
        assert not plain(url).names or twins[0].admit(url, 0) is None or "under another" in twins[0].admit(url, 0)
        assert plain(url).names or twins[0].admit(url, 0) is None
        lessons = [watch.learn(url, doubt, understood, candidates) for watch in twins]
        assert lessons[0] == lessons[1]
    first, second = (watch.changes() for watch in twins)
    assert first == second
    assert all(0 <= record.fresh <= record.read and record.idle <= record.read for record in first.patterns)


@settings(max_examples=40, deadline=None)
@given(st.lists(PAGES, max_size=40))
def test_window_0_refuses_nothing_and_learns_nothing(pages):
    watch = TrapDetector(0, TrapMemory(), Past(Host()))
    for url, text, links in pages:
        watch.learn(url, 3, document(url, text, links), tuple(map(candidate, links)))
        assert watch.admit(url, 3) is None
    assert not watch.changes()


LINES = st.text(st.sampled_from("ab1_9 \n\u0661\u00e9\u0345-"), max_size=60) | st.text()
WITH_DIGITS = re.compile(r"(?<![^\W_])[^\W0-9_]*+[0-9][^\W_]*")


@given(LINES)
@example("x1y z\n\n2\na")
def test_lines_that_are_new_are_given_once_without_their_words_with_digits(text):
    written = text.encode("utf-8", "replace")
    lines = WITH_DIGITS.sub("", written.decode()).split("\n")
    memory = LineMemory(1000, 0, ())
    new = memory.new_lines(written, -1, 1000, False).decode()
    assert new == "".join(f"{line}\n" for line in dict.fromkeys(lines))
    assert list(memory.take_new()) == [xxhash.xxh32_intdigest(line.encode()) for line in dict.fromkeys(lines)]
    assert memory.new_lines(written, -1, 1000, False) == b""
    apart = memory.new_lines(written, 1, 1000, False).decode()
    assert "\1" in text or apart == "".join(f"\1{line}\n" for line in dict.fromkeys(lines))


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=30), max_size=12), st.integers(1, 20))
def test_which_lines_are_in_memory_follows_from_their_sequence(pages, generation):
    """As a plain list of keys has it, and the same when a part of the sequence is given back."""
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
        new = memory.new_lines(written, -1, 1000, True).decode().split("\n")[:-1]
        assert [ord(line[-1]) - 100 for line in new] == expected
    keys = list(memory.take_new())
    first = max(0, len(keys) // generation - 1) * generation
    again = LineMemory(generation, first, array("I", keys[first:]))
    every = "\n".join(f"line {number + 100:c}" for number in range(41)).encode()
    assert again.new_lines(every, -1, 100, True) == memory.new_lines(every, -1, 100, True)
    assert again.count == memory.count


@given(st.binary(max_size=100), st.integers(0, 8))
def test_keys_are_xxh32(written, start):
    assert key_of(written, min(start, len(written)), len(written)) == xxhash.xxh32_intdigest(written[start:])


@settings(max_examples=60)
@given(LINES, st.lists(LINES.map(lambda text: text.split("\n", 1)[0]), max_size=5))
def test_a_quick_look_at_new_words_says_fresh_only_where_a_full_one_does(text, paths):
    text, url = text * 12, Url(f"{HOST}/start")
    page = document(url, text, [str(canonical(f"{HOST}/{quote(path)}")) for path in paths])
    addresses = "\n".join((url, *page.links.targets))
    quick = "%" not in addresses and _has_letters_beside(text.lower().encode("utf-8", "replace")[:600], addresses)
    assert not quick or _letters_beside(text.lower(), _spelled(url, page)) >= FRESH_LETTERS


def test_memory_is_bounded():
    watch = TrapDetector(40, TrapMemory(), Past(Host()))
    for number in range(3 * MAX_PATTERNS):
        word = "".join(chr(97 + int(digit)) for digit in str(number))
        watch.learn(
            Url(f"{HOST}/{word}/x"),
            3,
            document(f"{HOST}/{word}/x", "\n".join(word + letter for letter in "abcdefghijklmnop")),
            (),
        )
    assert len(watch._patterns) <= MAX_PATTERNS + 2
    assert watch._lines.young.count + watch._lines.old.count <= 2 * GENERATION
