"""Validation of mailto links."""

import time

import pytest

from periplus.urls.mailto import mailto_problem

GOOD = [
    "mailto:chris@example.com",
    "MAILTO:chris@example.com",
    "mailto:infobot@example.com?subject=current-issue",
    "mailto:infobot@example.com?body=send%20current-issue%0D%0Asend%20index",
    "mailto:list@example.org?In-Reply-To=%3C3469A91.D10AF4C@example.com%3E",
    "mailto:majordomo@example.com?body=subscribe%20bamboo-l",
    "mailto:joe@example.com?cc=bob@example.com&body=hello",
    "mailto:gorby%25kremvax@example.com",
    "mailto:unlikely%3Faddress@example.com?blat=foop",
    "mailto:Mike%26family@example.org",
    "mailto:%22not%40me%22@example.org",
    "mailto:%22oh%5C%5Cno%22@example.org",
    "mailto:user@example.org?subject=caf%C3%A9",
    "mailto:user@%E7%B4%8D%E8%B1%86.example.org?subject=Test",
    "mailto:?to=addr1@an.example,addr2@an.example",
    "mailto:addr1@an.example,addr2@an.example",
    "mailto:user@[192.0.2.1]",
    "mailto:?subject=look%20at%20this",
]


@pytest.mark.parametrize("text", GOOD)
def test_rfc6068_examples_are_valid(text):
    assert mailto_problem(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "mailto:a@b.example, c@d.example",
        " mailto: a@b.example ",
        "mailto:příliš@žluť.example",
        'mailto:"a,b"@example.org',
        "mailto:a@localhost",
    ],
)
def test_ours_links_that_mail_programs_accept_are_valid(text):
    assert mailto_problem(text) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("mailto:bad@@addr", "two @"),
        ("mailto:nobody", "no @"),
        ("mailto:@example.org", "before"),
        ("mailto:someone@", "after"),
        ("mailto:", "no address"),
        ("mailto:?", "no address"),
        ("mailto:a..b@example.org", "not allowed"),
        ("mailto:.a@example.org", "not allowed"),
        ("mailto:a b@example.org", "not allowed"),
        ("mailto:a@exa mple.org", "not a domain"),
        ("mailto:a@example..org", "not a domain"),
        ("mailto:a@-example.org", "not a domain"),
        ("mailto:a@example.org;b@example.org", "semicolon"),
        ("mailto:a@example.org,", "extra comma"),
        ("mailto:Jan Novák <jan@example.org>", "not allowed"),
        ("mailto://a@example.org", "//"),
        ("mailto:100%@example.org", "hexadecimal"),
        ("mailto:%ff@example.org", "UTF-8"),
        ("mailto:a@example.org?subject", "no value"),
        ("mailto:a@example.org?to=bad@@b", "two @"),
        ("mailto:a@example.org?cc=b", "no @"),
        ("mailto:" + "a" * 65 + "@example.org", "too long"),
        ("mailto:a@" + "b" * 64 + ".org", "too long"),
        ("mailto:a@" + "ž" * 60 + ".org", "too long"),
        ("mailto:a\ud800@b", "incomplete"),
        ("mailto:a" + "," * 30_000, "longer"),
    ],
)
def test_rfc6068_a_fault_of_a_link_is_named(text, word):
    assert word in mailto_problem(text)


def test_hostile_links_are_checked_in_linear_time():
    began = time.process_time()
    for text in (
        "mailto:" + "," * 19_000,
        "mailto:" + '"' * 19_000,
        "mailto:a@" + "ž" * 19_000,
        "mailto:" + "a." * 9_000,
        "mailto:a@" + "a-" * 9_000,
    ):
        assert mailto_problem(text)
    assert time.process_time() - began < 1
