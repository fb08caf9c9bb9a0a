"""robots.txt files by RFC 9309, rule by rule, and our own choices."""

import pytest

from periplus.document.robots import PARSED_BYTES, RobotsVerdict, parse_robots


def allowed(text, path, token="periplus"):
    return decided(text, path, token).allowed


def decided(text, path, token="periplus"):
    body = text if isinstance(text, bytes) else text.encode()
    return parse_robots(body).group_for(token).decide(path)


# 2.2.1 The User-Agent Line


def test_rfc9309_2_2_1_groups_of_the_same_agent_are_merged():
    text = "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: ExampleBot\ndisallow: /baz\n"
    assert [allowed(text, path, "ExampleBot") for path in ("/foo", "/bar", "/baz", "/qux")] == [
        False,
        False,
        False,
        True,
    ]


def test_rfc9309_2_2_1_star_applies_if_no_group_names_us():
    text = "user-agent: *\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: BazBot\ndisallow: /baz\n"
    assert [allowed(text, path, "ExampleBot") for path in ("/foo", "/bar", "/baz")] == [False, False, True]
    assert [allowed(text, path, "BazBot") for path in ("/foo", "/bar", "/baz")] == [True, True, False]


def test_rfc9309_2_2_1_without_a_group_there_are_no_rules():
    assert allowed("user-agent: other\ndisallow: /", "/x")
    assert allowed("", "/x")


def test_rfc9309_2_2_1_tokens_match_case_insensitively():
    assert not allowed("USER-AGENT: PeriPlus\nDISALLOW: /x", "/x", "periplus")
    assert not allowed("user-agent: periplus\ndisallow: /x", "/x", "PERIPLUS")


def test_rfc9309_2_2_1_a_group_can_name_several_agents():
    text = "user-agent: a\nuser-agent: periplus\n\nuser-agent: b\ndisallow: /x"
    assert [allowed(text, "/x", token) for token in ("a", "periplus", "b", "c")] == [False, False, False, True]


def test_rfc9309_2_2_1_star_groups_are_merged_too():
    assert not allowed("user-agent: *\ndisallow: /a\nuser-agent: b\ndisallow: /c\nuser-agent: *\ndisallow: /d", "/d")


# 2.2.2 The "Allow" and "Disallow" Lines


def test_rfc9309_2_2_2_longest_match_wins_in_any_order():
    for text in ("user-agent: *\nallow: /a/b\ndisallow: /a", "user-agent: *\ndisallow: /a\nallow: /a/b"):
        assert [allowed(text, path) for path in ("/a", "/a/b", "/a/bc", "/a/c")] == [False, True, True, False]


def test_rfc9309_2_2_2_allow_wins_a_tie():
    for text in (
        "user-agent: *\nallow: /p\ndisallow: /p",
        "user-agent: *\ndisallow: /p\nallow: /p",
        "user-agent: *\ndisallow: /*p\nallow: /pp",
    ):
        assert allowed(text, "/pp")


def test_rfc9309_2_2_2_paths_are_case_sensitive():
    assert allowed("user-agent: *\ndisallow: /X", "/x")


def test_rfc9309_2_2_2_matching_starts_with_the_first_octet():
    assert allowed("user-agent: *\ndisallow: /b", "/a/b")


def test_rfc9309_2_2_2_robots_txt_itself_is_always_allowed():
    assert allowed("user-agent: *\ndisallow: /", "/robots.txt")
    assert not allowed("user-agent: *\ndisallow: /", "/robots.txt.html")


def test_rfc9309_2_2_2_rules_outside_a_group_are_ignored():
    assert allowed("disallow: /\nuser-agent: *\ndisallow: /x", "/y")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
        ("/~user", "/%7Euser"),
        ("/%7euser", "/~user"),
        ("/a b", "/a%20b"),
        ("/a|{b}", "/a|%7Bb%7D"),
        ("/*%2F", "/x?y=%2F"),
    ],
)
def test_rfc9309_2_2_2_escapes_are_decoded_for_comparison(pattern, path):
    assert not allowed(f"user-agent: *\ndisallow: {pattern}", path)
    assert allowed(f"user-agent: *\nallow: {pattern}\ndisallow: /", path)


def test_rfc9309_2_2_2_reserved_characters_are_not_their_escapes():
    assert allowed("user-agent: *\ndisallow: /a/b", "/a%2Fb")
    assert allowed("user-agent: *\ndisallow: /a%2Fb", "/a/b")


def test_a_neighbouring_rule_does_not_hide_a_prefix_as_in_heritrix():
    text = "user-agent: *\ndisallow: /a\ndisallow: /ab\ndisallow: /abc/d\ndisallow: /ab/x"
    assert [allowed(text, path) for path in ("/ac", "/abd", "/abc/e", "/b", "/")] == [False, False, False, True, True]


# 2.2.3 Special Characters


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/foo# comment", "/foo", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-%2A.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24", "/path/foo-", False),
        ("/this/path/exactly$", "/this/path/exactly", True),
        ("/this/path/exactly$", "/this/path/exactly/not", False),
        ("/this/*/exactly", "/this/path/exactly/so", True),
        ("/this/*/exactly", "/this//exactly", True),
        ("/this/*/exactly", "/this/exactly", False),
        ("/*.html$", "/a.html", True),
        ("/*.html$", "/a.html?x", False),
        ("/*.html$", "/.html.html", True),
        ("/a$b", "/a$b/c", True),
        ("/a$b", "/a", False),
        ("*", "/x", True),
        ("*.gif$", "/x/y.gif", True),
        ("/a**b", "/axxb", True),
        ("/a*", "/a", True),
        ("/a*$", "/abc", True),
        ("/*a*b*c$", "/xaxbxcbc", True),
        ("/*a*b*c$", "/xaxcxb", False),
        ("/ab*b$", "/ab", False),
        ("/$", "/", True),
        ("/$", "/x", False),
        ("/*?", "/x", False),
        ("/*?", "/x?y", True),
    ],
)
def test_rfc9309_2_2_3_star_and_dollar_are_special(pattern, path, matches):
    assert allowed(f"user-agent: *\ndisallow: {pattern}", path) is not matches


# 2.2.4 Other Records


def test_rfc9309_2_2_4_other_records_do_not_end_a_group():
    text = (
        "user-agent: a\nSitemap: https://example.org/s.xml\nfoo: bar\ncrawl-delay: 5\n"
        "user-agent: periplus\ndisallow: /x"
    )
    assert not allowed(text, "/x", "a")
    assert not allowed(text, "/x")


def test_sitemaps_can_be_anywhere_and_are_listed_once():
    text = (
        "Sitemap: https://a.example/1.xml # one\nuser-agent: *\nsite-map: /2.xml\ndisallow:\n"
        "SITEMAP:https://a.example/1.xml\nsitemap:"
    )
    assert parse_robots(text.encode()).sitemaps == ("https://a.example/1.xml", "/2.xml")


# 2.5 Limits


def test_rfc9309_2_5_rules_within_500_kib_are_parsed():
    filler = "# " + "x" * 97 + "\n"
    text = "user-agent: *\n" + filler * 5000 + "disallow: /in\n"
    assert len(text) < PARSED_BYTES
    assert not allowed(text, "/in")


def test_ours_a_line_cut_by_the_limit_is_no_rule():
    start = b"user-agent: *\n"
    body = start + b"#" * (PARSED_BYTES - len(start) - 12) + b"\ndisallow: /a/very/long/path\n"
    assert parse_robots(body).groups[0].rules == ()
    assert parse_robots(b"x" * (PARSED_BYTES + 1)).groups == ()


# 5. Examples


SIMPLE = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("token", "path", "expected"),
    [
        ("other", "/x.gif", False),
        ("other", "/example/a", False),
        ("other", "/publications/", True),
        ("other", "/else", True),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/publications/", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("barbot", "/example/x.gif", True),
        ("quxbot", "/example/page.html", True),
        ("quxbot", "/x.gif", True),
    ],
)
def test_rfc9309_5_1_simple_example(token, path, expected):
    assert allowed(SIMPLE, path, token) is expected


def test_rfc9309_5_2_longest_match():
    text = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert decided(text, "/example/page/disallowed.gif", "foobot") == RobotsVerdict(
        False, "Disallow: /example/page/disallowed.gif", 3
    )
    assert decided(text, "/example/page/a.gif", "foobot") == RobotsVerdict(True, "Allow: /example/page/", 2)


# Cases that other parsers get wrong, and our own choices


RULES = "User-agent: *\nDisallow: /b\n"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        *(
            (mark + RULES.encode(name), "is in UTF-16 or UTF-32")
            for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
        ),
        *((RULES.encode(name), "is in UTF-16 or UTF-32") for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32")),
        (b"\xef\xbb" + RULES.encode(), "begins with a part of a byte order mark"),
        (b"\xef" + RULES.encode(), "begins with a part of a byte order mark"),
    ],
)
def test_ours_a_file_that_does_not_start_as_utf8_disallows_everything(body, why):
    verdict = parse_robots(body).group_for().decide("/a")
    assert not verdict.allowed and verdict.line == 1
    assert verdict.rule == f"the file {why}{', not in UTF-8' if 'UTF' in why else ''}: what it forbids cannot be read"
    assert parse_robots(body).group_for().decide("/robots.txt").allowed


@pytest.mark.parametrize("start", ["\ufeff", "\uff03 full width", "\ufefb Arabic", "", "# caf\xe9"])
def test_a_file_that_starts_with_any_letter_is_parsed(start):
    assert not allowed(f"{start}\n{RULES}".encode(), "/b")
    assert allowed(f"{start}\n{RULES}".encode(), "/a")


def test_a_byte_order_mark_is_ignored():
    assert not allowed(b"\xef\xbb\xbfUser-agent: *\nDisallow: /b.html", "/b.html")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n"])
def test_every_kind_of_line_ending_is_accepted(end):
    assert decided(end.join(["User-agent: *", "Disallow: /a", "Disallow: /b"]), "/b").rule == "Disallow: /b"
    assert parse_robots(end.join(["User-agent: *", "Disallow: /a"]).encode()).groups[0].rules[0].verdict.line == (
        2 if end != "\n\n" else 3
    )


def test_a_longer_specific_rule_precedes_a_wildcard():
    assert not allowed("user-agent: *\ndisallow: /*.html$\nallow: /a.html", "/a.html")
    assert [allowed("user-agent: *\ndisallow: /b\nallow: /b.html", path) for path in ("/b.html", "/b")] == [True, False]


def test_the_deciding_line_is_returned_as_written():
    text = "# hello\n\nUser-agent: *\n  Disallow :  /private   # keep out\n"
    assert decided(text, "/private/x") == RobotsVerdict(False, "Disallow :  /private", 4)
    assert decided(text, "/public") == RobotsVerdict(True, "", 0)


def test_an_empty_disallow_allows_everything_and_ends_the_list_of_agents():
    text = "user-agent: periplus\ndisallow:\nuser-agent: *\ndisallow: /"
    assert allowed(text, "/x")
    assert not allowed(text, "/x", "other")


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("user-agent: *\ncrawl-delay: 2", 2.0),
        ("user-agent: *\nCrawl-Delay: .5", 0.5),
        ("user-agent: *\ncrawl-delay: 1.5 # s", 1.5),
        ("user-agent: *\ncrawl-delay: -1", None),
        ("user-agent: *\ncrawl-delay: soon", None),
        ("user-agent: *\ncrawl-delay: nan", None),
        ("user-agent: *\ncrawl-delay: inf", None),
        ("user-agent: *\ncrawl-delay: 1e9", None),
        ("user-agent: *\ncrawl-delay:", None),
        ("user-agent: *\ncrawl-delay: 9\nuser-agent: periplus\ncrawl-delay: 3", 3.0),
        ("user-agent: a\ncrawl-delay: 10\nuser-agent: *\ndisallow: /x", None),
        ("user-agent: *\ncrawl-delay: 10\nuser-agent: a\ndisallow: /x", 10.0),
        ("user-agent: a\nuser-agent: *\ncrawl-delay: 10\ncrawl-delay: 12\ndisallow: /x\ncrawl-delay: 11", 12.0),
        ("user-agent: a\ncrawl-delay: 60\nuser-agent: *\ncrawl-delay: 1\ndisallow: /x", 1.0),
        ("user-agent: *\ncrawl-delay: 60\nuser-agent: periplus\ndisallow: /x", None),
        ("user-agent: *\ncrawl-delay: 9\ndisallow: /x\nuser-agent: periplus\ncrawl-delay: 3", 3.0),
        ("user-agent: *\ncrawl-delay: 9\ndisallow: /x\nuser-agent: periplus\ndisallow: /x", None),
        ("crawl-delay: 9\nuser-agent: *\ndisallow: /x", None),
    ],
)
def test_ours_the_longest_crawl_delay_of_the_applicable_groups_counts(text, delay):
    """The longest is the most polite."""
    assert parse_robots(text.encode()).group_for("periplus").crawl_delay == delay


@pytest.mark.parametrize("word", ["dissallow", "dissalow", "disalow", "diasllow", "disallaw", "DisAllow"])
def test_ours_misspelled_disallow_is_accepted(word):
    assert not allowed(f"user-agent: *\n{word}: /x", "/x")


@pytest.mark.parametrize("line", ["useragent: *", "user agent: *", "User-agent *", "user-agent : *", "\tUser-Agent:*"])
def test_ours_misspelled_user_agent_is_accepted(line):
    assert not allowed(f"{line}\ndisallow /x", "/x")


def test_ours_a_line_of_prose_is_no_rule():
    assert allowed("user-agent: *\ndisallow everything below /", "/")


def test_ours_a_missing_slash_is_accepted():
    assert not allowed("user-agent: *\ndisallow: private/", "/private/x")


def test_ours_a_version_after_the_token_is_accepted_but_other_names_are_not():
    text = (
        "user-agent: periplus/2.0 (nice)\ndisallow: /v\n\nuser-agent: periplus-news\ndisallow: /n\n\n"
        "user-agent: periplus2\ndisallow: /2"
    )
    assert [allowed(text, path) for path in ("/v", "/n", "/2")] == [False, True, True]
    assert not allowed(text, "/v", "Periplus/0.1 (+https://example.org)")


def test_ours_an_agent_without_name_matches_no_crawler():
    text = "user-agent:\ndisallow: /\nuser-agent: *bot\ndisallow: /"
    assert allowed(text, "/x")
    assert allowed(text, "/x", "")


def test_ours_a_web_page_instead_of_robots_txt_allows_everything():
    body = (
        b"<!DOCTYPE html>\n<html><body><a href='http://example.org/'>Disallow: /</a>\nUser-agents like us</body></html>"
    )
    assert allowed(body, "/x")


def test_a_hostile_pattern_is_matched_in_linear_time():
    rules = parse_robots(b"user-agent: *\ndisallow: /" + b"*a" * 200_000 + b"b").group_for()
    assert rules.decide("/" + "a" * 4000).allowed
