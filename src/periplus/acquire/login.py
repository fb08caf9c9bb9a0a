"""What a user signs in with, the forms that are filled in for it, and the signs by which one is in. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from urllib.parse import unquote_plus, urlencode

from periplus.document import html
from periplus.document.decode import decode
from periplus.document.headers import media_type, sniffed_media_type
from periplus.errors import InvalidUrl, PeriplusError
from periplus.model.page import HTML_TYPES
from periplus.model.visit import Fetched, Headers, Redirected, Visit
from periplus.model.web import Origin, Url
from periplus.urls.canonical import resolve
from periplus.urls.hosts import host_name, is_within, origin_of, path_and_query, registered_domain
from periplus.urls.user_patterns import UserPattern
from periplus.values import Pairs, frozen

MASKED = "[masked]"
# a sign within a script is none that a reader sees
_UNSEEN = re.compile(r"<(script|style|template)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_LABELS = ("value", "title", "aria-label", "alt")  # what is read of a button or picture that has no text


class LoginFailed(PeriplusError):
    """Signing in did not succeed. The message says which sign was missing and what came instead; it holds no secret."""


@dataclass(frozen=True, slots=True, repr=False)
class Cookie:
    """One cookie. domain: a host's name, for it alone unless `below`; expires: seconds since the epoch, inf: never."""

    name: str
    value: str
    domain: str
    path: str = "/"
    below: bool = False  # the hosts below the domain are sent it too
    secure: bool = False  # by https alone
    expires: float = float("inf")

    def is_for(self, url: Url, now: float) -> bool:
        """RFC 6265, 5.4."""
        host = host_name(url)
        if self.expires <= now or (self.secure and not url.startswith("https:")):
            return False
        if host != self.domain and not (self.below and is_within(host, self.domain)):
            return False
        path, own = path_and_query(url).partition("?")[0], self.path.rstrip("/")
        return path in (self.path, own) or path.startswith(own + "/")


@frozen
class Sign:
    """What a page shows: a text that readers see, what a CSS selector matches, or how its address begins."""

    text: str = ""
    selector: str = ""
    address: str = ""

    def __bool__(self) -> bool:
        return bool(self.text or self.selector or self.address)

    @property
    def is_on_pages(self) -> bool:
        """Whether it can be looked for on any page: an address is that of one."""
        return bool(self.text or self.selector)

    def __str__(self) -> str:
        parts = (("the text", self.text), ("the selector", self.selector), ("the address", self.address))
        return " and ".join(f"{kind} {value!r}" for kind, value in parts if value)


@dataclass(frozen=True, slots=True, repr=False)
class Login:
    """How one signs in, with the secrets: it lives in memory alone, and its text names no value."""

    name: str
    origins: frozenset[Origin]  # the only ones that are sent anything of it
    headers: tuple[str, ...] = ()  # lines, sent with each request
    cookies: tuple[Cookie, ...] = ()
    form: Url | None = None
    fields: Pairs = ()
    selector: str = ""  # which form of the page; empty: the one that has the fields
    check: Url | None = None  # a page that shows the sign; None: the one that signing in leads to
    signed_in: Sign = Sign()
    signed_out: Sign = Sign()
    never: tuple[UserPattern, ...] = ()  # addresses that are never asked for, besides AVOIDED
    allow: tuple[UserPattern, ...] = ()  # addresses that are, for all AVOIDED says

    def __str__(self) -> str:
        return f"login {self.name!r}"

    @property
    def has_session(self) -> bool:
        """Whether the server remembers who is in, as after a form or by cookies, and not each request says it."""
        return self.form is not None or bool(self.cookies)


# Links that end the session or delete something ----------------------------------------------------------------------

AVOIDED = frozenset({
    "logout", "logoff", "signout", "signoff", "abmelden", "ausloggen", "deconnexion", "odhlasit", "odhlaseni",
    "kijelentkezes", "cerrarsesion", "disconnect", "delete", "remove", "destroy", "erase", "purge", "trash", "drop",
    "unsubscribe", "deactivate", "disable", "revoke", "cancel", "uninstall", "wipe", "loschen", "entfernen",
    "supprimer", "eliminar", "borrar", "smazat", "odstranit", "torles",
})  # fmt: skip
"""Words of addresses that are not asked for while one is signed in: a GET may log out or delete."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def avoided(url: Url, login: Login) -> str:
    """Why a URL is never asked for, in words; empty: it may be."""
    target = path_and_query(url)
    for pattern in login.never:
        if pattern.is_in(url):
            return f"{login}: never followed, matches {pattern.text}"
    if any(pattern.is_in(url) for pattern in login.allow):
        return ""
    words = [word.lower() for word in _WORD.findall(_plain(target))]
    pairs = [first + second for first, second in pairwise(words)]
    for word in (*words, *pairs):
        if word in AVOIDED or word.endswith("logout"):
            return f"{login}: not followed, for it may log out or delete: {word}"
    return ""


def _plain(target: str) -> str:
    """Percent-decoded, and without accents: `l%C3%B6schen` is `loschen`."""
    decomposed = unicodedata.normalize("NFD", unquote_plus(target))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


# Cookies -------------------------------------------------------------------------------------------------------------


def cookies_of(visit: Visit, headers: Headers, now: float) -> tuple[Cookie, ...]:
    """What an answer sets, RFC 6265, 5.2 and 5.3; of other hosts nothing. One that is to go has expired."""
    made = (_cookie_of(line, visit.request.url, now) for line in headers.all("set-cookie"))
    return tuple(cookie for cookie in made if cookie is not None)


def _cookie_of(line: str, url: Url, now: float) -> Cookie | None:
    from email.utils import mktime_tz, parsedate_tz

    pair, *attributes = line.split(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not equals or not name or not (name + value).isascii() or not (name + value).isprintable():
        return None
    given = {key.strip().lower(): text.strip() for key, _, text in (one.partition("=") for one in attributes)}
    host, expires = host_name(url), float("inf")
    domain = given.get("domain", "").lstrip(".").lower()
    if domain and not (is_within(host, domain) and (domain == host or "." in registered_domain(domain))):
        return None
    if date := parsedate_tz(given.get("expires", "").replace("-", " ")):
        expires = float(mktime_tz(date))
    age = given.get("max-age", "")
    if age.lstrip("-").isdigit():
        expires = now + int(age)
    path = given.get("path", "")
    if not path.startswith("/"):
        path = path_and_query(url).partition("?")[0].rpartition("/")[0] or "/"
    return Cookie(name, value, domain or host, path, bool(domain), "secure" in given, expires)


def masked(visit: Visit) -> Visit:
    """The visit without the values of the cookies that came with it, as it may be stored."""
    headers = getattr(visit.outcome, "headers", None)
    if headers is None or not headers.all("set-cookie"):
        return visit
    fields = tuple((name, _masked_cookie(value) if name == "set-cookie" else value) for name, value in headers.fields)
    return replace(visit, outcome=replace(visit.outcome, headers=replace(headers, fields=fields)))


def _masked_cookie(line: str) -> str:
    pair, semicolon, attributes = line.partition(";")
    return f"{pair.partition('=')[0]}={MASKED}{semicolon}{attributes}"


# Signs ---------------------------------------------------------------------------------------------------------------


class LoginEvidence(Enum):
    """What an answer tells of the session."""

    IN = "in"
    OUT = "out"
    DOUBTFUL = "doubtful"  # the sign is not there
    NONE = "none"  # no page of HTML that could show it


def evidence(visit: Visit, login: Login) -> LoginEvidence:
    """What an answer to a request that was sent with the session's cookies tells of it."""
    match visit.outcome:
        case Redirected(target=target) if _is_form(target, login) or _begins(target, login.signed_out.address):
            return LoginEvidence.OUT
        case Fetched(status=401 | 403):
            return LoginEvidence.OUT
        case Fetched(status=status) as fetched if 200 <= status < 300 and _is_html(fetched):
            return _of_page(tree_of(fetched), login)
        case _:
            return LoginEvidence.NONE


def evidence_of_check(visit: Visit, login: Login) -> LoginEvidence:
    """As `evidence`, of the page to check, which may be data: then the sign's text stands in it as it was sent."""
    sign = evidence(visit, login)
    match visit.outcome:
        case Fetched(status=status, body=body) if sign is LoginEvidence.NONE and 200 <= status < 300:
            shown = login.signed_in.text
            return LoginEvidence.IN if shown and shown in decode(body, "", "text/plain")[0] else LoginEvidence.NONE
        case _:
            return sign


def _of_page(tree: html.Tree, login: Login) -> LoginEvidence:
    if login.signed_out.is_on_pages and shows(tree, login.signed_out):
        return LoginEvidence.OUT
    if login.signed_in.is_on_pages and shows(tree, login.signed_in):
        return LoginEvidence.IN
    if login.form is not None and any(_leads_to_login(form, login) for form in html.elements(tree, "form")):
        return LoginEvidence.OUT
    return LoginEvidence.DOUBTFUL if login.signed_in.is_on_pages else LoginEvidence.IN


def _leads_to_login(form: html.Element, login: Login) -> bool:
    """Whether it is the form of the login: with a password, and the fields that are filled in."""
    names = {html.attribute(one, "name") for one in html.select(form, "input[name]")}
    has_password = bool(html.select(form, "input[type=password i]"))
    return has_password and names.issuperset(name for name, _ in login.fields)


def _is_form(target: Url, login: Login) -> bool:
    return login.form is not None and target.partition("?")[0] == login.form.partition("?")[0]


def _begins(target: Url, address: str) -> bool:
    return bool(address) and target.startswith(address)


def shows(tree: html.Tree, sign: Sign) -> bool:
    """Whether a page shows what the sign says of pages, all of it."""
    if sign.text and sign.text not in "\n".join(_seen(tree)):
        return False
    return not sign.selector or bool(html.select(tree, sign.selector))


def _seen(tree: html.Tree) -> list[str]:
    labels = [html.attribute(one, name) for name in _LABELS for one in html.select(tree, f"[{name}]")]
    return [*(html.text_of(body) for body in html.elements(tree, "body")), *labels]


def tree_of(fetched: Fetched) -> html.Tree:
    """The tree of a page, without scripts and styles."""
    text, _ = decode(fetched.body, media_type(fetched.headers)[1], "text/html")
    return html.parse(_UNSEEN.sub(" ", text))


def _is_html(fetched: Fetched) -> bool:
    return (media_type(fetched.headers)[0] or sniffed_media_type(fetched.body)) in HTML_TYPES


def seen_instead(visit: Visit) -> str:
    """What came, in words for the user: status, title and the first words; never a value that was sent."""
    match visit.outcome:
        case Redirected(status=status, target=target):
            return f"{status}, which leads to {target.partition('?')[0]}"
        case Fetched(status=status) as fetched if _is_html(fetched):
            tree = tree_of(fetched)
            title = next((html.text_of(one) for one in html.elements(tree, "title")), "")
            again = ", with a form that asks for a password" if html.select(tree, "input[type=password i]") else ""
            return f"{status}, a page titled {title[:80]!r}{again}"
        case Fetched(status=status, headers=headers):
            return f"{status}, of the type {media_type(headers)[0] or 'none'}"
        case outcome:
            return getattr(outcome, "detail", "") or getattr(outcome, "rule", "") or type(outcome).__name__.lower()


# Forms ---------------------------------------------------------------------------------------------------------------


def filled_in(visit: Visit, fetched: Fetched, login: Login) -> tuple[Url, bytes]:
    """Where the form of a page is sent, and the body: what the user fills in, and all else (hidden tokens) as served.

    Raises LoginFailed: there is no such form, it lacks a field, or it is sent elsewhere than the login names.
    """
    page, tree = visit.request.url, tree_of(fetched)
    form = _form_of(tree, login, page)
    if html.attribute(form, "method").lower() != "post":
        raise LoginFailed(f"{login}: the form on {page} is sent by GET, which would write the password into an address")
    try:
        base = next((html.attribute(one, "href") for one in html.select(tree, "base[href]")), "")
        at = resolve(base, page)[0] if base else page
        target = resolve(html.attribute(form, "action"), at)[0] if html.attribute(form, "action").strip() else page
    except InvalidUrl as error:
        raise LoginFailed(f"{login}: the form on {page} is sent to no address: {error}") from None
    if origin_of(target) not in login.origins:
        raise LoginFailed(f"{login}: the form on {page} is sent to {origin_of(target)}, which `hosts` does not name")
    given = dict(login.fields)
    pairs = [(name, value) for name, value in _served(form) if name not in given]
    return target, urlencode([*pairs, *given.items()]).encode()


def _form_of(tree: html.Tree, login: Login, page: Url) -> html.Element:
    forms = html.select(tree, login.selector) if login.selector else html.elements(tree, "form")
    forms = [form for form in forms if html.tag_of(form) == "form"]
    wanting = {name for name, _ in login.fields}
    for form in forms:
        if wanting <= _names(form):
            return form
    if not forms:
        chosen = f" that {login.selector!r} selects" if login.selector else ""
        raise LoginFailed(f"{login}: {page} has no form{chosen}: {seen_instead_of_form(tree)}")
    names = "; ".join(", ".join(sorted(_names(form))) or "none" for form in forms)
    raise LoginFailed(f"{login}: no form on {page} has all the fields {', '.join(sorted(wanting))}; it has: {names}")


def seen_instead_of_form(tree: html.Tree) -> str:
    title = next((html.text_of(one) for one in html.elements(tree, "title")), "")
    return f"its title is {title[:80]!r}; a form that a script makes is not there without a browser: take cookies"


def _names(form: html.Element) -> set[str]:
    return {html.attribute(one, "name") for one in html.select(form, "input, select, textarea, button")} - {""}


def _served(form: html.Element) -> list[tuple[str, str]]:
    """(name, value) of what a browser would send of the form as it came, with its first button (HTML, 4.10.21.4)."""
    pairs: list[tuple[str, str]] = []
    has_button = False
    for one in html.select(form, "input[name], select[name], textarea[name], button[name]"):
        name, tag = html.attribute(one, "name"), html.tag_of(one)
        kind = html.attribute(one, "type").lower() or ("submit" if tag == "button" else "text")
        if (
            one.attr("disabled") is not None
            or kind in ("reset", "image", "file")
            or (tag == "input" and kind == "button")
        ):
            continue
        if kind == "submit":
            if has_button:
                continue
            has_button = True
        if kind in ("checkbox", "radio") and one.attr("checked") is None:
            continue
        if tag == "select":
            options = html.select(one, "option[selected]") or html.select(one, "option")[:1]
            pairs += [(name, one_of.attr("value") or html.text_of(one_of)) for one_of in options]
        elif tag == "textarea":
            pairs.append((name, one.text))
        else:
            pairs.append((name, html.attribute(one, "value") or ("on" if kind in ("checkbox", "radio") else "")))
    return pairs
