"""Properties of robots.txt for any bytes, and agreement with protego where both follow the standard."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from protego import Protego

from periplus.document.robots import page_directives, parse_robots, robots_from_answer

WORDS = [
    b"user-agent",
    b"disallow",
    b"allow",
    b"crawl-delay",
    b"sitemap",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"*",
    b"$",
    b"/",
    b"a",
    b"periplus",
    b"#",
    b"%2",
]
BODIES = st.binary(max_size=200) | st.lists(
    st.sampled_from([*WORDS, b"\xef\xbb\xbf", b"\xff", b"\x00", b"?", b"%3A", b"\xe3\x83\x84"]), max_size=40
).map(b"".join)
PATTERNS = st.text("/abc*$?", max_size=7).map("/".__add__)
PATHS = st.text("/abc?", max_size=9).map("/".__add__)
RULES = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), PATTERNS), max_size=8)


def written(rules):
    return "User-agent: *\n" + "".join(f"{kind}: {pattern}\n" for kind, pattern in rules)


def decided(rules, path):
    return parse_robots(written(rules).encode()).group_for().decide(path)


def matches(pattern, path):
    """Reference implementation: the special characters of the standard as a regular expression."""
    anchored = pattern.endswith("$")
    body = ".*".join(re.escape(part) for part in pattern.removesuffix("$").split("*"))
    return re.match(body + (r"\Z" if anchored else ""), path, re.DOTALL) is not None


@given(BODIES, st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=10))
@settings(max_examples=100)
def test_robots_is_total(body, path, token):
    robots = parse_robots(body)
    for rules in (robots.group_for(token), robots.group_for()):
        rules.decide(path)
        verdict = rules.decide("/" + path)
        assert verdict.allowed or verdict.line
        assert rules.crawl_delay is None or rules.crawl_delay >= 0
    robots_from_answer(200, "", body).robots()


@given(RULES, PATTERNS, PATHS)
@settings(max_examples=100)
def test_one_more_disallow_never_allows_more(rules, pattern, path):
    if not decided(rules, path).allowed:
        assert not decided([*rules, ("Disallow", pattern)], path).allowed


@given(RULES, PATHS)
@settings(max_examples=166)
@example([("Disallow", "/a"), ("Disallow", "/ab")], "/ac")
@example([("Disallow", "/a*b*"), ("Allow", "/a$")], "/a")
def test_the_reported_line_decides(rules, path):
    verdict = decided(rules, path)
    if verdict.line:
        kind, pattern = rules[verdict.line - 2]
        assert verdict.rule == f"{kind}: {pattern}"
        assert verdict.allowed is (kind == "Allow")
        assert (
            matches(pattern.replace("$", "%24") if not pattern.endswith("$") else pattern, path) or "$" in pattern[:-1]
        )
    else:
        assert not any(matches(pattern, path) for _, pattern in rules if "$" not in pattern[:-1])


@given(RULES, PATHS)
@settings(max_examples=166)
def test_the_longest_match_wins(rules, path):
    """The standard in one expression, on patterns without inner `$` and doubled `*`, which both sides spell alike."""
    rules = [(kind, pattern) for kind, pattern in rules if "$" not in pattern[:-1] and "**" not in pattern]
    found = [(len(pattern), kind == "Allow") for kind, pattern in rules if matches(pattern, path)]
    assert decided(rules, path).allowed is (max(found)[1] if found else True)


@given(
    st.lists(
        st.tuples(st.sampled_from(["Allow", "Disallow"]), st.text("/abc.*", max_size=6).map("/".__add__)), max_size=8
    ),
    PATHS,
)
@settings(max_examples=100)
def test_equals_protego_on_plain_rules(rules, path):
    rules = [(kind, pattern) for kind, pattern in rules if "**" not in pattern and not pattern.endswith("*")]
    text = written(rules)
    assert parse_robots(text.encode()).group_for().decide(path).allowed is Protego.parse(text).can_fetch(
        "http://example.org" + path, "periplus"
    )


@given(RULES, PATHS, st.integers(0, 20))
def test_escaping_an_unreserved_character_changes_nothing(rules, path, at):
    if path[at : at + 1].isalpha():
        escaped = path[:at] + f"%{ord(path[at]):02x}" + path[at + 1 :]
        assert decided(rules, escaped) == decided(rules, path)


@given(st.lists(st.text(st.characters(), max_size=20)), st.lists(st.tuples(st.text(max_size=8), st.text(max_size=20))))
def test_page_directives_are_total_and_only_grow(values, metas):
    few, more = page_directives(values, metas), page_directives([*values, "noindex"], metas)
    assert more == (True, few[1])
