"""Every setting that takes a regular expression of the user matches it in linear time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from periplus.analyse.issues import audit_rules
from periplus.analyse.segments import segment_rules
from periplus.errors import UsageError
from periplus.jobs.presets import flags
from periplus.model.web import Url
from periplus.settings import Scope
from periplus.store.reader import matches
from periplus.urls.parameters import apply, rules_of
from periplus.urls.scope import site_scope
from periplus.urls.user_patterns import user_pattern
from periplus_agents.extraction import extract_rules, extract_values
from periplus_browser.logins import login_of

ENDLESS = "(a|a|L+)+(L+)+(L+)+$x"  # takes hours with Python's re
LONG = "L" * 4_000
URL = Url(f"http://a.test/{LONG}")
LIMIT_S = 60.0  # CPU time, for work of milliseconds


def login(pattern: str) -> bool:
    table = {"hosts": ["a.test"], "bearer": "x", "never": [pattern]}
    return login_of(table, "a", "a.toml", Path(), is_public=False).never[0].is_in(URL)


DOORS: dict[str, Callable[[str], object]] = {
    "include": lambda text: site_scope([Url("http://a.test/")], Scope(include=(text,))).decide(URL),
    "exclude": lambda text: site_scope([Url("http://a.test/")], Scope(exclude=(text,))).decide(URL),
    "form": lambda text: flags({"include": text}),
    "ignore": lambda text: audit_rules((), [f"* {text}"]).ignored[0][1].is_in(URL),
    "segment": lambda text: segment_rules(f"a = {{ pattern = '{text}' }}".join(("[segments]\n", "\n")))[0].sets[0][0][
        1
    ](URL),
    "extract": lambda text: extract_values(
        extract_rules(f"[extract]\na = {{ regex = '{text}' }}"), LONG.encode(), "utf-8", "text/html"
    ),
    "login": login,
    "list": lambda text: matches(URL, text),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_expression_with_catastrophic_backtracking_is_matched_in_time(door: str) -> None:
    began = time.process_time()
    DOORS[door](ENDLESS)
    assert time.process_time() - began < LIMIT_S


@pytest.mark.parametrize("door", [name for name in DOORS if name != "list"])
@pytest.mark.parametrize("text", ["(?=x)y", "(?<!x)y", r"(a)\1", r"a\Z", "a++", "x{1000}y{1000}(x{500}){500}"])
def test_unsupported_syntax_is_refused_with_advice(door: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"not a regular expression of RE2.*no look-around.*write \$"):
        DOORS[door](text)


@pytest.mark.parametrize(
    "rules",
    [
        f'[[script]]\npath = "/{"**L" * 20}x"',
        f'[[script]]\npath = "/{"*L" * 20}x"',
        f'[[site]]\nignored = ["{"*L" * 20}x"]',
    ],
)
def test_a_url_rule_with_many_stars_is_matched_in_time(rules: str) -> None:
    began = time.process_time()
    assert apply(Url(f"{URL}?{LONG}=1"), rules_of(rules)).url == f"{URL}?{LONG}=1"
    assert time.process_time() - began < LIMIT_S


def test_a_segment_with_many_stars_is_matched_in_time() -> None:
    (segment,) = segment_rules(f'[segments]\na = "/{"**L" * 20}x"')
    began = time.process_time()
    assert segment.sets[0][0][1](URL) is False
    assert time.process_time() - began < LIMIT_S


@pytest.mark.parametrize(
    ("text", "found", "other"),
    [
        (r"\.(jpe?g|png)$", "http://a.test/b.jpg", "http://a.test/b.jpg?x"),
        (r"[?&]page=\d+", "http://a.test/?page=12", "http://a.test/?page=a"),
        (r"^https?://[^/]+/docs/", "https://a.test/docs/b", "https://a.test/b/docs/"),
        (r"(?i)/ADMIN\b", "http://a.test/admin/x", "http://a.test/administer"),
        (r"/caf%C3%A9|ž", "http://a.test/caf%C3%A9", "http://a.test/cafe"),
    ],
)
def test_common_expressions_match_as_usual(text: str, found: str, other: str) -> None:
    pattern = user_pattern(text, "include")
    assert pattern.is_in(found) and not pattern.is_in(other)


def test_an_expression_can_extract_groups_of_any_letters() -> None:
    rules = extract_rules("[extract]\ncity = { regex = 'Ort: (\\pL+)' }\nall = { regex = '\\pL+o', all = true }")
    assert extract_values(rules, "Ort: Čáslav, Čo a Žo".encode(), "utf-8", "text/plain") == ("Čáslav", "Čo\nŽo")


def test_surrogates_never_match_and_do_not_raise() -> None:
    assert not user_pattern("ž", "include").is_in("\ud800")
    assert not user_pattern("\ud800", "include").is_in("\ud800 ?")
