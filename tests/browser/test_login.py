"""Login: forms, cookies, evidence of being logged in, avoided links."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest

from periplus.model.visit import Fetched, Headers, Redirected, Request, Visit
from periplus.model.web import Origin, Url
from periplus_browser.login import (
    Cookie,
    Login,
    LoginError,
    LoginEvidence,
    Sign,
    avoidance_reason,
    cookies_of,
    evidence,
    fill_form,
    mask_cookies,
)
from periplus_browser.logins import netscape_cookies
from periplus_browser.session import LoginSession

HTML = ("content-type", "text/html; charset=utf-8")
PAGE = Url("https://a.test/in/login")
LOGIN = Login(
    "door",
    frozenset({Origin("https://a.test:443")}),
    form=PAGE,
    fields=(("user", "ada"), ("pass", "é&=")),
    signed_in=Sign(text="Log out"),
)
FORM = b"<form method=post action=go><input name=user><input type=password name=pass value=old>"


def visit(body: bytes = b"", status: int = 200, *fields: tuple[str, str], url: Url = PAGE) -> Visit:
    return Visit(Request(url), 1000.0, 0.1, Fetched(status, Headers((HTML, *fields)), body))


def sent(body: bytes) -> tuple[str, list[tuple[str, str]]]:
    page = visit(body)
    assert isinstance(page.outcome, Fetched)
    target, data = fill_form(page, page.outcome, LOGIN)
    return target, parse_qsl(data.decode(), keep_blank_values=True)


def test_a_form_is_submitted_with_the_fields_that_a_browser_sends():
    target, pairs = sent(
        b"<form method=get action=/search><input name=q></form>" + FORM + b"<input type=hidden name=t value=x1>"
        b"<input type=checkbox name=off><input type=checkbox name=on checked><input disabled name=no value=1>"
        b"<input type=radio name=r value=1><input type=radio name=r value=2 checked>"
        b"<textarea name=n>two\nlines</textarea>"
        b"<select name=s><option>first<option value=2 selected>second</select><select name=d><option>only</select>"
        b"<input type=reset name=x><input type=image name=i>"
        b"<button name=b value=1>In</button><button name=c>Out</button>"
    )
    assert target == "https://a.test/in/go"
    assert dict(pairs) == {
        "t": "x1", "on": "on", "r": "2", "n": "two\nlines", "s": "2", "d": "only", "b": "1", "user": "ada",
        "pass": "é&=",
    }  # fmt: skip
    assert len(pairs) == 9


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<p>nothing", "has no form"),
        (b"<form method=post><input name=user></form>", "has all the fields pass, user; it has: user"),
        (FORM.replace(b"post", b"get"), "uses GET"),
        (FORM.replace(b"go", b"https://b.test/"), "is sent to https://b.test:443, which is not in `hosts`"),
        (FORM.replace(b"go", b"http://a.test/"), "is sent to http://a.test:80, which is not in `hosts`"),
        (b'<base href="https://b.test/">' + FORM, "is sent to https://b.test:443"),
    ],
)
def test_a_form_that_cannot_be_submitted_raises_the_reason(body, why):
    with pytest.raises(LoginError, match=re.escape(why)) as error:
        sent(body)
    assert "é&=" not in str(error.value)


def test_a_missing_form_is_named_by_its_selector():
    page = visit(FORM)
    with pytest.raises(LoginError, match="no form that matches 'form#door'"):
        fill_form(page, page.outcome, replace(LOGIN, selector="form#door"))


@pytest.mark.parametrize(
    ("body", "is_in"),
    [
        (b"<a href=/x>Log  out</a>", LoginEvidence.IN),
        (b"<input type=submit value='Log out'>", LoginEvidence.IN),
        (b"<script>'Log out'</script><p>Hello", LoginEvidence.DOUBTFUL),
        (b"<!-- Log out --><p>Hello", LoginEvidence.DOUBTFUL),
        (FORM, LoginEvidence.OUT),
        (b"<form method=post><input type=password name=other></form>", LoginEvidence.DOUBTFUL),
    ],
)
def test_evidence_is_visible_text(body, is_in):
    assert evidence(visit(body), LOGIN) is is_in


def test_only_html_refusals_and_redirects_to_the_form_are_evidence():
    assert evidence(visit(b"", 401), LOGIN) is LoginEvidence.OUT
    assert evidence(visit(b"", 404), LOGIN) is LoginEvidence.NONE
    to_form = Redirected(302, Headers(), Url(PAGE + "?next=/x"))
    assert evidence(Visit(Request(Url("https://a.test/x")), 0, 0, to_form), LOGIN) is LoginEvidence.OUT
    elsewhere = Redirected(302, Headers(), Url("https://a.test/other"))
    assert evidence(Visit(Request(Url("https://a.test/x")), 0, 0, elsewhere), LOGIN) is LoginEvidence.NONE


@pytest.mark.parametrize(
    "path",
    ["/logout", "/user/log-out", "/Special:UserLogout", "/index.php?title=Spezial:Abmelden", "/a?action=delete&id=3",
     "/doDelete", "/sign_out", "/signOff", "/l%C3%B6schen/3", "/x?do=Sign%20Out", "/cart/remove/7"],
)  # fmt: skip
def test_links_that_log_out_or_delete_are_avoided(path):
    assert avoidance_reason(Url("https://a.test" + path), LOGIN)


@pytest.mark.parametrize("path", ["/", "/deletedness", "/blog/outlook", "/catalog-outlet", "/undeleted", "/login"])
def test_other_links_are_followed(path):
    assert avoidance_reason(Url("https://a.test" + path), LOGIN) == ""


def test_only_forms_and_cookies_make_a_session_which_one_worker_keeps():
    cookies = cookies_of(visit(), Headers((("set-cookie", "sid=1"),)), 1000.0)
    assert len(cookies) == 1
    token = Login("token", LOGIN.origins)
    assert LOGIN.has_session and replace(token, cookies=cookies).has_session and not token.has_session


def test_cookies_are_sent_to_their_host_path_and_scheme():
    lines = (
        "a=1; Path=/in", "b=2; Domain=.a.test; Secure; Path=/", "c=3; Domain=b.test", "d=4; Domain=test",
        "e=5; Max-Age=10", "f=6; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "nothing", "g=7",
    )  # fmt: skip
    page = visit(b"", 200, *(("set-cookie", line) for line in lines))
    assert isinstance(page.outcome, Fetched)
    cookies = cookies_of(page, page.outcome.headers, 1000.0)

    def at(url: str, now: float = 1001.0) -> str:
        return "".join(cookie.name for cookie in cookies if cookie.is_for(Url(url), now))

    assert at("https://a.test/in/x") == "abeg"
    assert at("https://a.test/in") == "abeg"
    assert at("https://a.test/inside") == "b"
    assert at("http://a.test/in/x") == "aeg"
    assert at("https://sub.a.test/in/x") == "b"
    assert at("https://a.test/in/x", 1011.0) == "abg"


def test_a_masked_visit_has_names_but_no_values_of_cookies():
    page = mask_cookies(visit(b"x", 200, ("set-cookie", "sid=s3cret; Path=/; HttpOnly")))
    assert isinstance(page.outcome, Fetched)
    assert page.outcome.headers.get("set-cookie") == "sid=[masked]; Path=/; HttpOnly"


def test_a_netscape_cookie_file_is_read_and_invalid_lines_are_ignored():
    text = "# comment\n.a.test\tTRUE\t/\tTRUE\t0\tsid\t1\n#HttpOnly_a.test\tFALSE\t/x\tFALSE\t99\tt\t2\nbroken\n"
    assert netscape_cookies(text) == (
        Cookie("sid", "1", "a.test", "/", below=True, secure=True),
        Cookie("t", "2", "a.test", "/x", expires=99.0),
    )


def test_secrets_of_a_login_are_not_in_its_repr():
    assert "é" not in f"{LOGIN} {LOGIN!r} {Request(PAGE, body='é'.encode())!r} {Cookie('n', 'é', 'a.test')!r}"


# redirects of a login


def redirected(session: LoginSession, target: str) -> None:
    """Answers the request of the session with a redirect."""
    assert session.step is not None
    session.take(Visit(session.step, 1000.0, 0.1, Redirected(302, Headers(), Url(target), target)), 1000.0)


@pytest.mark.parametrize(
    "target", ["https://b.test/in", "http://a.test/in", "https://a.test:8443/in", "https://www.a.test/in"]
)
def test_a_redirect_of_a_login_to_another_origin_is_not_followed(target):
    session = LoginSession(LOGIN, {}, False)
    session.begin()
    redirected(session, target)
    assert session.step is None
    assert "which is not in the login's `hosts`" in session.failure


def test_a_redirect_of_a_login_within_its_origins_is_followed():
    session = LoginSession(LOGIN, {}, False)
    session.begin()
    redirected(session, "https://a.test/in/other")
    assert session.step is not None
    assert (session.step.url, session.step.hops, session.failure) == ("https://a.test/in/other", 1, "")
