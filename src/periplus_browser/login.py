"""Login rules without I/O: credentials, forms, and how a page shows whether the session is signed in."""

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
from periplus.model.visit import Cut, Fetched, Headers, Redirected, Visit
from periplus.model.web import Origin, Url
from periplus.urls.canonical import resolve
from periplus.urls.hosts import host_name, is_within, origin_of, path_and_query, registered_domain
from periplus.urls.user_patterns import UserPattern
from periplus.values import Pairs, frozen

MASK = "[masked]"
# text within these elements is not visible to readers, so it is no sign
_UNSEEN = re.compile(r"<(script|style|template)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_LABELS = ("value", "title", "aria-label", "alt")  # labels of buttons and images without text
LOGOUT_WORDS = frozenset({
    "logout", "logoff", "signout", "signoff", "abmelden", "ausloggen", "deconnexion", "odhlasit", "odhlaseni",
    "kijelentkezes", "cerrarsesion", "disconnect", "delete", "remove", "destroy", "erase", "purge", "trash", "drop",
    "unsubscribe", "deactivate", "disable", "revoke", "cancel", "uninstall", "wipe", "loschen", "entfernen",
    "supprimer", "eliminar", "borrar", "smazat", "odstranit", "torles",
})  # fmt: skip
"""URLs with these words are not requested by a signed-in crawl, since a GET may log out or delete."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


class LoginError(PeriplusError):
    """Signing in failed. The message names the missing sign and the answer received; it contains no secrets."""


@dataclass(frozen=True, slots=True, repr=False)
class Cookie:
    """One cookie. domain: a host name, without its subdomains unless `below`; expires: seconds since the epoch."""

    name: str
    value: str
    domain: str
    path: str = "/"
    below: bool = False  # also sent to subdomains
    secure: bool = False  # sent by https only
    expires: float = float("inf")

    def is_for(self, url: Url, now: float) -> bool:
        """Whether the cookie is sent with a request for this URL (RFC 6265, 5.4)."""
        host = host_name(url)
        if self.expires <= now or (self.secure and not url.startswith("https:")):
            return False
        if host != self.domain and not (self.below and is_within(host, self.domain)):
            return False
        path, own = path_and_query(url).partition("?")[0], self.path.rstrip("/")
        return path in (self.path, own) or path.startswith(own + "/")


@frozen
class Sign:
    """A sign that a page shows: a visible text, a match of a CSS selector, or a prefix of the page's URL."""

    text: str = ""
    selector: str = ""
    address: str = ""

    def __bool__(self) -> bool:
        return bool(self.text or self.selector or self.address)

    @property
    def is_on_pages(self) -> bool:
        """Whether any page may show it; an address belongs to one page."""
        return bool(self.text or self.selector)

    def __str__(self) -> str:
        parts = (("the text", self.text), ("the selector", self.selector), ("the address", self.address))
        return " and ".join(f"{kind} {value!r}" for kind, value in parts if value)


@dataclass(frozen=True, slots=True, repr=False)
class Login:
    """One login with its secrets. Kept in memory only; str() shows no values."""

    name: str
    origins: frozenset[Origin]  # headers, cookies and fields are sent to these origins only
    headers: tuple[str, ...] = ()  # header lines, sent with each request
    cookies: tuple[Cookie, ...] = ()
    form: Url | None = None
    fields: Pairs = ()
    selector: str = ""  # CSS selector of the form; empty: the first form that has the fields
    check: Url | None = None  # a page that shows the sign; None: the page after signing in
    signed_in: Sign = Sign()
    signed_out: Sign = Sign()
    never: tuple[UserPattern, ...] = ()  # URLs that are never requested, besides those with LOGOUT_WORDS
    allow: tuple[UserPattern, ...] = ()  # URLs that are requested in spite of LOGOUT_WORDS

    def __str__(self) -> str:
        return f"login {self.name!r}"

    @property
    def has_session(self) -> bool:
        """Whether the server keeps a session, as after a form or by cookies (not headers with each request)."""
        return self.form is not None or bool(self.cookies)


# Links that end the session or delete something ----------------------------------------------------------------------


def avoidance_reason(url: Url, login: Login) -> str:
    """Why a URL is never requested, as a text for users; empty: it is allowed."""
    target = path_and_query(url)
    for pattern in login.never:
        if pattern.is_in(url):
            return f"{login}: never followed, matches {pattern.text}"
    if any(pattern.is_in(url) for pattern in login.allow):
        return ""
    words = [word.lower() for word in _WORD.findall(_plain(target))]
    pairs = [first + second for first, second in pairwise(words)]
    for word in (*words, *pairs):
        if word in LOGOUT_WORDS or word.endswith("logout"):
            return f"{login}: not followed, because the address may log out or delete something: {word}"
    return ""


def _plain(target: str) -> str:
    """Percent-decoded and without accents: `l%C3%B6schen` becomes `loschen`."""
    decomposed = unicodedata.normalize("NFD", unquote_plus(target))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


# Cookies -------------------------------------------------------------------------------------------------------------


def cookies_of(visit: Visit, headers: Headers, now: float) -> tuple[Cookie, ...]:
    """The cookies that an answer sets for its own host (RFC 6265, 5.2 and 5.3). A deleted cookie has expired."""
    cookies = (_cookie_of(line, visit.request.url, now) for line in headers.all("set-cookie"))
    return tuple(cookie for cookie in cookies if cookie is not None)


def _cookie_of(line: str, url: Url, now: float) -> Cookie | None:
    from email.utils import mktime_tz, parsedate_tz

    pair, *attributes = line.split(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not equals or not name or not (name + value).isascii() or not (name + value).isprintable():
        return None
    given = {key.strip().lower(): text.strip() for key, _, text in (part.partition("=") for part in attributes)}
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


def mask_cookies(visit: Visit) -> Visit:
    """The visit with the values of its Set-Cookie fields masked, for storage."""
    headers = getattr(visit.outcome, "headers", None)
    if headers is None or not headers.all("set-cookie"):
        return visit
    fields = tuple((name, _masked_cookie(value) if name == "set-cookie" else value) for name, value in headers.fields)
    return replace(visit, outcome=replace(visit.outcome, headers=replace(headers, fields=fields)))


def _masked_cookie(line: str) -> str:
    pair, semicolon, attributes = line.partition(";")
    return f"{pair.partition('=')[0]}={MASK}{semicolon}{attributes}"


# Signs ---------------------------------------------------------------------------------------------------------------


class LoginEvidence(Enum):
    """What an answer shows about the session."""

    IN = "in"
    OUT = "out"
    DOUBTFUL = "doubtful"  # the sign is missing
    NONE = "none"  # not an HTML page, so it cannot show the sign


def evidence(visit: Visit, login: Login) -> LoginEvidence:
    """What an answer to a request with the session's cookies shows about the session."""
    match visit.outcome:
        case Redirected(target=target) if _is_form(target, login) or _begins(target, login.signed_out.address):
            return LoginEvidence.OUT
        case Fetched(cut=Cut.BOT_WALL):
            return LoginEvidence.NONE
        case Fetched(status=401 | 403):
            return LoginEvidence.OUT
        case Fetched(status=status) as fetched if 200 <= status < 300 and _is_html(fetched):
            return _of_page(tree_of(fetched), login)
        case _:
            return LoginEvidence.NONE


def evidence_of_check(visit: Visit, login: Login) -> LoginEvidence:
    """As `evidence`, for the page to check. If it is not HTML (an API answer), its body is searched for the text."""
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
    """Whether it is the login form: it has a password field and all fields of the login."""
    names = {html.attribute(element, "name") for element in html.select(form, "input[name]")}
    has_password = bool(html.select(form, "input[type=password i]"))
    return has_password and names.issuperset(name for name, _ in login.fields)


def _is_form(target: Url, login: Login) -> bool:
    return login.form is not None and target.partition("?")[0] == login.form.partition("?")[0]


def _begins(target: Url, address: str) -> bool:
    return bool(address) and target.startswith(address)


def shows(tree: html.Tree, sign: Sign) -> bool:
    """Whether a page shows the sign's text and matches its selector."""
    if sign.text and sign.text not in "\n".join(_visible_texts(tree)):
        return False
    return not sign.selector or bool(html.select(tree, sign.selector))


def _visible_texts(tree: html.Tree) -> list[str]:
    labels = [html.attribute(element, name) for name in _LABELS for element in html.select(tree, f"[{name}]")]
    return [*(html.text_of(body) for body in html.elements(tree, "body")), *labels]


def tree_of(fetched: Fetched) -> html.Tree:
    """The tree of a page, without scripts and styles."""
    text, _ = decode(fetched.body, media_type(fetched.headers)[1], "text/html")
    return html.parse(_UNSEEN.sub(" ", text))


def _is_html(fetched: Fetched) -> bool:
    return (media_type(fetched.headers)[0] or sniffed_media_type(fetched.body)) in HTML_TYPES


def seen_instead(visit: Visit) -> str:
    """A description of the answer for the user: status and title, or type. It contains no values that were sent."""
    match visit.outcome:
        case Redirected(status=status, target=target):
            return f"{status}, a redirect to {target.partition('?')[0]}"
        case Fetched(status=status) as fetched if _is_html(fetched):
            tree = tree_of(fetched)
            title = next((html.text_of(element) for element in html.elements(tree, "title")), "")
            again = ", with a form that asks for a password" if html.select(tree, "input[type=password i]") else ""
            return f"{status}, a page titled {title[:80]!r}{again}"
        case Fetched(status=status, headers=headers):
            return f"{status}, media type {media_type(headers)[0] or 'unknown'}"
        case outcome:
            return getattr(outcome, "detail", "") or getattr(outcome, "rule", "") or type(outcome).__name__.lower()


# Forms ---------------------------------------------------------------------------------------------------------------


def fill_form(visit: Visit, fetched: Fetched, login: Login) -> tuple[Url, bytes]:
    """(form action, body): the login's fields, and all others (hidden tokens) with the values in the page.

    Raises LoginError if there is no such form, a field is missing, or the action is not on an origin of the login.
    """
    page, tree = visit.request.url, tree_of(fetched)
    form = _form_of(tree, login, page)
    if html.attribute(form, "method").lower() != "post":
        raise LoginError(f"{login}: the form on {page} uses GET, which would put the password into a URL")
    try:
        base = next((html.attribute(element, "href") for element in html.select(tree, "base[href]")), "")
        at = resolve(base, page)[0] if base else page
        target = resolve(html.attribute(form, "action"), at)[0] if html.attribute(form, "action").strip() else page
    except InvalidUrl as error:
        raise LoginError(f"{login}: the form on {page} has an invalid action: {error}") from None
    if origin_of(target) not in login.origins:
        raise LoginError(f"{login}: the form on {page} is sent to {origin_of(target)}, which is not in `hosts`")
    given = dict(login.fields)
    pairs = [(name, value) for name, value in _default_fields(form) if name not in given]
    return target, urlencode([*pairs, *given.items()]).encode()


def _form_of(tree: html.Tree, login: Login, page: Url) -> html.Element:
    forms = html.select(tree, login.selector) if login.selector else html.elements(tree, "form")
    forms = [form for form in forms if html.tag_of(form) == "form"]
    required = {name for name, _ in login.fields}
    for form in forms:
        if required <= _names(form):
            return form
    if not forms:
        chosen = f" that matches {login.selector!r}" if login.selector else ""
        raise LoginError(f"{login}: {page} has no form{chosen}: {_missing_form_hint(tree)}")
    names = "; ".join(", ".join(sorted(_names(form))) or "none" for form in forms)
    raise LoginError(f"{login}: no form on {page} has all the fields {', '.join(sorted(required))}; it has: {names}")


def _missing_form_hint(tree: html.Tree) -> str:
    title = next((html.text_of(element) for element in html.elements(tree, "title")), "")
    return f"its title is {title[:80]!r}; if a script creates the form, sign in with cookies instead"


def _names(form: html.Element) -> set[str]:
    return {html.attribute(field, "name") for field in html.select(form, "input, select, textarea, button")} - {""}


def _default_fields(form: html.Element) -> list[tuple[str, str]]:
    """(name, value) pairs that a browser would submit for the unchanged form by its first button (HTML, 4.10.21.4)."""
    pairs: list[tuple[str, str]] = []
    has_button = False
    for field in html.select(form, "input[name], select[name], textarea[name], button[name]"):
        name, tag = html.attribute(field, "name"), html.tag_of(field)
        kind = html.attribute(field, "type").lower() or ("submit" if tag == "button" else "text")
        if (
            field.attr("disabled") is not None
            or kind in ("reset", "image", "file")
            or (tag == "input" and kind == "button")
        ):
            continue
        if kind == "submit":
            if has_button:
                continue
            has_button = True
        if kind in ("checkbox", "radio") and field.attr("checked") is None:
            continue
        if tag == "select":
            options = html.select(field, "option[selected]") or html.select(field, "option")[:1]
            pairs += [(name, option.attr("value") or html.text_of(option)) for option in options]
        elif tag == "textarea":
            pairs.append((name, field.text))
        else:
            pairs.append((name, html.attribute(field, "value") or ("on" if kind in ("checkbox", "radio") else "")))
    return pairs
