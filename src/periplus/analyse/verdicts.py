"""Judges link targets from all observations: redirect chains, failed attempts, and error pages with status 200."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from urllib.parse import unquote, urlsplit

import numpy as np

from periplus.analyse.duplicates import Hashes, jaccard
from periplus.analyse.linkgraph import places_in_sorted
from periplus.document.digest import without_marks
from periplus.model.arrays import Ints, Ints16, Ints32, Mask
from periplus.model.audit import FragmentVerdict, Verdict
from periplus.model.visit import Cause, Cut, Reason
from periplus.values import frozen

# Phrases are lower case and without diacritics, as from `without_marks`.
PHRASES = frozenset(
    """
    404 | error 404 | 404 error | http 404 | http error 404 | error code 404 | http status 404 | 404 not found | not found | 410 gone
    page not found | file not found | the page was not found | this page was not found | page cannot be found | page can't be found
    the page cannot be found | the page can't be found | the page you requested was not found | the page you requested could not be found
    the requested page was not found | the requested page could not be found | the page you are looking for was not found
    the page you are looking for does not exist | page does not exist | the page does not exist | this page does not exist
    this page doesn't exist | this page isn't available | page not available | page unavailable | page is missing | missing page
    document not found | object not found | resource not found | requested url was not found | the requested url was not found on this server
    we can't find that page | we can't find this page | we couldn't find that page | sorry, page not found | this page could not be found
    stranka nenalezena | stranka nebyla nalezena | stranka neexistuje | tato stranka neexistuje | pozadovana stranka nebyla nalezena
    pozadovana stranka neexistuje | stranku se nepodarilo najit | chyba 404 | nenalezeno | soubor nenalezen | clanek nenalezen
    stranka nebola najdena | stranka sa nenasla | pozadovana stranka neexistuje | nenajdene
    seite nicht gefunden | die seite wurde nicht gefunden | diese seite wurde nicht gefunden | diese seite existiert nicht
    die seite existiert nicht | seite nicht verfugbar | nicht gefunden | fehler 404 | datei nicht gefunden | seite existiert nicht
    page non trouvee | page introuvable | page inexistante | cette page n'existe pas | la page n'existe pas | erreur 404 | introuvable
    la page demandee n'existe pas | la page demandee est introuvable | cette page est introuvable
    pagina no encontrada | no encontrado | la pagina no existe | esta pagina no existe | pagina inexistente | no se encontro la pagina
    no se ha encontrado la pagina | pagina nao encontrada | nao encontrado | a pagina nao existe | esta pagina nao existe | erro 404
    pagina non trovata | la pagina non esiste | questa pagina non esiste | errore 404 | non trovato | pagina niet gevonden | niet gevonden
    deze pagina bestaat niet | fout 404 | sidan hittades inte | sidan kunde inte hittas | sidan finns inte | sidan saknas | fel 404
    siden blev ikke fundet | siden findes ikke | side ikke fundet | siden ble ikke funnet | siden finnes ikke | fant ikke siden | feil 404 | fejl 404
    sivua ei loydy | sivua ei loytynyt | sivua ei ole | virhe 404 | lehte ei leitud | puslapis nerastas | lapa nav atrasta
    strona nie znaleziona | nie znaleziono strony | strona nie zostala znaleziona | strona nie istnieje | ta strona nie istnieje | blad 404
    nie znaleziono | az oldal nem talalhato | a keresett oldal nem talalhato | oldal nem talalhato | nem talalhato | hiba 404 | 404-es hiba
    pagina nu a fost gasita | pagina nu exista | pagina negasita | eroare 404 | stranica nije pronadena | stranica nije pronadjena
    stranica ne postoji | stran ne obstaja | strani ni mogoce najti | greska 404 | napaka 404 | sayfa bulunamadi | aradiginiz sayfa bulunamadi
    hata 404 | khong tim thay trang | trang khong ton tai | halaman tidak ditemukan
    страница не наидена | страница не существует | такои страницы не существует | запрашиваемая страница не наидена | такои страницы нет
    ошибка 404 | не наидено | 404 ошибка | сторінку не знаидено | сторінка не знаидена | сторінки не існує | помилка 404
    страницата не е намерена | страницата не съществува | грешка 404 | страница ниjе пронаћена | страница не постоjи
    η σελιδα δεν βρεθηκε | σφαλμα 404 | הדף לא נמצא | העמוד לא נמצא | الصفحة غير موجودة | الصفحه غير موجوده | صفحه یافت نشد
    页面不存在 | 页面未找到 | 找不到页面 | 您访问的页面不存在 | 抱歉,页面不存在 | 页面没有找到 | 找不到網頁 | 找不到頁面 | 頁面不存在
    ページが見つかりません | お探しのページは見つかりません | お探しのページは見つかりませんでした | 페이지를 찾을 수 없습니다 | ไม่พบหน้า
    """.replace("\n", " | ").split("|")  # noqa: E501
)
"""Each must match a whole title, heading or part of a title: `How to fix 404 pages` does not match."""
OPENINGS = [
    "oops",
    "sorry",
    "ups",
    "uh oh",
    "whoops",
    "omlouvame se",
    "es tut uns leid",
    "desole",
    "lo sentimos",
    "извините",
    "error",
    "http",
    "404",
    "410",
]
"""Words that may precede a phrase: `Oops! Page not found`, `404: Page not found`."""
# With menus and footer: 6,873 pages of manuals have a median of 4,130, error pages rarely have 3,000
TEXT_CHARS = 3_000
SAME = 0.9  # Jaccard similarity of shingles: an error page may repeat the requested URL
SAME_SHORT = 20  # distinct shingles; shorter pages are equal only if title and text are, ignoring the URL
PROBE_WORDS = "periplus-no-such-page"
_PARTS = re.compile(r"\s+[|\-–—·:»«•/~]+\s+|\s*[|»«•·]\s*|:\s+|\s+[–—]\s+")
_EDGES = " \t\n.!?,;:…'\"()[]-–—/|#"
_OPENING = re.compile(rf"(?:{'|'.join(map(re.escape, map(without_marks, OPENINGS)))})\b[\s.!?,;:…-]*")
_HOME_FILES = re.compile(r"/(?:(?:index|default|home)(?:\.[a-z]{2,5})?/?)?\Z", re.IGNORECASE)
PERMANENT = frozenset({301, 308})
# 405 and 406 for a plain GET are measures against robots
REFUSALS = frozenset({401, 402, 403, 405, 406, 407, 429, 451, 999})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PASSING = frozenset({408, 421, 425})  # 4xx statuses about this request, not about the page
LONG_CHAIN = 5  # hops; search engines' crawlers give up after 5 to 10 (RFC 9309 2.3.1.2 requires at least five)
NET_HOSTS = 3  # of other sites: one or two silent hosts are more likely gone than a sign of a local network failure
NET_SHARE = 0.9  # silent share: on a machine without network one mirror of dozens still answered
SILENT = frozenset({Cause.NAME, Cause.CONNECT, Cause.TIMEOUT})
_UNREACHABLE = {Cause.NAME: "the host name does not exist", Cause.CONNECT: "no connection to the host is possible"}
_FAILING = {
    Cause.TIMEOUT: "it did not answer in time",
    Cause.FIRST_BYTE: "it accepted the request and sent nothing",
    Cause.RESET: "the connection was lost",
    Cause.NOT_HTTP: "its answer is not HTTP",
    Cause.HEADER_LIMIT: "its header exceeds the size limit",
}
_OURS = {
    Cause.PRIVATE: "a private address, not requested",
    Cause.PROXY: "the proxy failed",
    Cause.CANCELLED: "the crawl stopped",
    Cause.BUG: "an internal error",
}
_CUT_SHORT = {
    Cut.SHORT: "the body ended before its declared length",
    Cut.BAD_ENCODING: "the body cannot be decompressed",
    Cut.RATIO_LIMIT: "the body exceeds the compression ratio limit",
    Cut.TIME_LIMIT: "the body did not end in time",
}
_NO_REQUEST = {
    Reason.ROBOTS_UNREACHABLE: "robots.txt is unreachable, which disallows everything",
    Reason.HOST_DOWN: "its host was dropped before it was requested",
    Reason.PRIVATE: "a private address, not requested",
    Reason.BUG: "an internal error",
    Reason.SCHEME: "no crawler fetches this scheme",
}
_BOT_WALL = "a bot wall refuses crawlers, perhaps not browsers"


class ChainRole(StrEnum):
    """The role of a row in its chain."""

    REQUESTED = "requested"
    INTERMEDIATE = "intermediate"
    FINAL = "final"
    LOOP = "loop"  # occurred in the chain before: the redirects never end


@frozen
class ChainRow:
    """One URL of a redirect chain. The rows of a chain are consecutive; order counts from 0."""

    chain_id: int  # id of the requested URL, stable across runs
    order: int
    url_id: int
    status: int  # of the redirect, or the answer of the last URL; 0: not requested
    role: ChainRole


@frozen
class RedirectColumns:
    """r redirects: source answered with status and target. At most one per source, in any order."""

    sources: Ints
    targets: Ints
    statuses: Ints16


@frozen
class ChainEnds:
    """The end of each redirect, in the order of RedirectColumns."""

    ends: Ints  # the last URL; in a loop: any URL of it
    hops: Ints32  # redirects to the end, at least 1
    loops: Mask  # the redirects never end


def chain_ends(redirects: RedirectColumns) -> ChainEnds:
    """Resolves all redirects at once, doubling the distance in each round: O(r log r) regardless of chain length."""
    order = np.argsort(redirects.sources, kind="stable")
    sources, ends = redirects.sources[order], redirects.targets[order].copy()
    hops = np.ones(len(order), np.int64)
    following = places_in_sorted(sources, ends)
    for _ in range(len(order).bit_length()):
        on = np.flatnonzero(following >= 0)
        if not on.size:
            break
        step = following[on]
        ends[on], hops[on] = ends[step], np.minimum(hops[on] + hops[step], len(order))
        following[on] = following[step]
    loops = following >= 0
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return ChainEnds(ends[back], hops[back].astype(np.int32), loops[back])


def chain_rows(redirects: RedirectColumns, final_status: dict[int, int]) -> Iterator[ChainRow]:
    """The chains as rows, one per URL, the requested URL first. Cost: the number of rows.

    Each chain is listed once from its start; a loop that nothing leads into from its smallest id. final_status: status
    of ids that do not redirect; missing: 0.
    """
    columns = (redirects.sources.tolist(), redirects.targets.tolist(), redirects.statuses.tolist())
    hop = {source: (target, status) for source, target, status in zip(*columns, strict=True)}
    for start in _starts(hop):
        place = start
        met: set[int] = set()
        while place in hop and place not in met:
            yield ChainRow(
                start, len(met), place, hop[place][1], ChainRole.INTERMEDIATE if met else ChainRole.REQUESTED
            )
            met.add(place)
            place = hop[place][0]
        role, status = (
            (ChainRole.LOOP, hop[place][1]) if place in met else (ChainRole.FINAL, final_status.get(place, 0))
        )
        yield ChainRow(start, len(met), place, status, role)


def _starts(hop: dict[int, tuple[int, int]]) -> Iterator[int]:
    """Ascending: redirects without a redirect to them, then one of each loop not reached from these."""
    led_to = {target for target, _ in hop.values()}
    seen: set[int] = set()
    for loops in (False, True):
        for start in sorted(hop):
            if start in seen or (start in led_to and not loops):
                continue
            yield start
            place = start
            while place in hop and place not in seen:
                seen.add(place)
                place = hop[place][0]


# A false alarm costs more than a missed page, so there are three sufficient conditions instead of weighted hints: the
# page has the text that the host sends for a nonexistent URL; it is short and calls itself an error page; a deep URL
# redirects to the home page, and so do nonexistent URLs. A host that sends the same text for everything proves nothing.


@frozen
class PageProbe:
    """The features of a page."""

    url: str  # requested
    final_url: str  # the URL that answered, after redirects
    title: str
    h1: str
    text: str
    shingles: Hashes  # of `without_address`, from `duplicates.shingles`


@frozen
class HostHabits:
    """How one host answers requests for nonexistent URLs, as far as tested. All answered 200, possibly
    after redirects.
    """

    # Nonexistent URLs, from `probe_url`; those with other answers are left out
    probes: Sequence[PageProbe] = ()
    home: PageProbe | None = None  # its home page, to detect hosts that send one text for everything


def probe_url(url: str, token: str) -> str:
    """A nonexistent sibling of this URL: same folder, same extension.

    token: random, so that no server can know it.
    """
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    _, dot, ending = name.rpartition(".")
    return (
        f"{parts.scheme}://{parts.netloc}{folder}/"
        f"{PROBE_WORDS}-{token}{dot + ending if dot and len(ending) <= 5 else ''}"
    )


def looks_missing(page: PageProbe, habits: HostHabits) -> str:
    """Why a page with status 200 seems to be an error page, as a clause; '' if it does not."""
    if PROBE_WORDS in page.url:
        return ""
    if sent_home(page, habits):
        return "it redirects to the home page, as nonexistent URLs do"
    for probe in habits.probes:
        if _leads_home(probe) or (habits.home is not None and _same(habits.home, probe)):
            continue  # the same text for everything, as in single-page applications: proves nothing
        if _same(page, probe):
            return "it has the same text as the host's answer to nonexistent URLs"
    if len(page.text) <= TEXT_CHARS and not _is_home(page.final_url):
        for where, words in (("title", page.title), ("heading", page.h1)):
            if says_missing(words) and not (
                where == "heading" and len(page.title) > 0 and _matches_url(page.title, page.url)
            ):
                return f"its {where} says: {words.strip()[:100]}"
    return ""


def says_missing(words: str) -> bool:
    """Whether a title or heading, or a part of it between dashes or bars, is that of an error page."""
    plain = without_marks(words)
    return any(_is_phrase(part) for part in (plain, *_PARTS.split(plain)))


@cache
def _phrases() -> frozenset[str]:
    return frozenset(without_marks(phrase.strip()) for phrase in PHRASES if phrase.strip())


def _is_phrase(part: str) -> bool:
    part = " ".join(part.split()).strip(_EDGES)
    if part in _phrases():
        return True
    if not _OPENING.search(part):
        return False
    shorter = _OPENING.sub("", part, count=1).strip(_EDGES)
    return shorter in _phrases() or _OPENING.sub("", shorter, count=1).strip(_EDGES) in _phrases()


def _matches_url(title: str, url: str) -> bool:
    """Whether the title has a word of the URL's last segment: then the page is about the requested subject."""
    words = set(re.findall(r"\w{4,}", without_marks(unquote(urlsplit(url).path.rpartition("/")[2]))))
    return not words.isdisjoint(re.findall(r"\w{4,}", without_marks(title)))


def sent_home(page: PageProbe, habits: HostHabits) -> bool:
    """Whether a deep URL redirected to its host's or domain's home page, and a probe did as well."""
    return _leads_home(page) and any(
        _leads_home(probe) and _address(probe.final_url) == _address(page.final_url) for probe in habits.probes
    )


def _leads_home(page: PageProbe) -> bool:
    return page.url != page.final_url and _is_home(page.final_url) and not _is_home(page.url)


def _is_home(url: str) -> bool:
    return bool(_HOME_FILES.fullmatch(urlsplit(url).path or "/"))


def _address(url: str) -> str:
    return urlsplit(url)._replace(query="", fragment="", scheme="").geturl()


def _same(first: PageProbe, other: PageProbe) -> bool:
    """Whether two pages have the same text, ignoring the requested URL."""
    if min(len(first.shingles), len(other.shingles)) >= SAME_SHORT:
        return jaccard(first.shingles, other.shingles) >= SAME
    titles = without_address(first.title, first.url), without_address(other.title, other.url)
    return (
        bool(first.text)
        and titles[0] == titles[1]
        and without_address(first.text, first.url) == without_address(other.text, other.url)
    )


def without_address(text: str, url: str) -> str:
    """The text without the requested URL, in full or in part, encoded or not: error pages repeat it."""
    path = urlsplit(url).path
    for address in (url, path, path.rpartition("/")[2]):
        for written in (address, unquote(address)):
            if len(written) > 1:
                text = text.replace(written, "")
    return " ".join(text.split())


# A refusal is not a broken link, a single failure is not an alarm, and URLs that were not requested are not judged.
# Order of the rules: URLs that cannot be requested; URLs not requested; the latest attempt, if its answer is
# conclusive; two failures with enough time between them; otherwise suspect, with the time of the next attempt.


@frozen
class Attempt:
    """One GET of the target, following redirects. A failure of the host (such as DNS) counts as an attempt."""

    at: float  # seconds since the epoch, UTC
    status: int  # of the last response; 0: none
    cause: Cause | None = None  # why there was no response
    cut: Cut = Cut.NONE


@frozen
class Hop:
    """One redirect on the way, and where it leads."""

    status: int
    target: str


@frozen
class Evidence:
    """Everything known about a link's target."""

    reason: Reason = Reason.OK  # of the URL, in the collection
    attempts: Sequence[Attempt] = ()  # oldest first
    hops: Sequence[Hop] = ()  # redirects of the latest attempt, in order
    # Whether the redirects form a loop: the status of the attempt is then that of the last redirect
    circle: bool = False
    looks_missing: str = ""  # why it seems to be an error page, from `looks_missing`
    fragment: FragmentVerdict = FragmentVerdict.TOP


@frozen
class Judgement:
    """The verdict, and the reason as a clause."""

    verdict: Verdict
    why: str
    ask_again_at: float = 0.0  # time of the next attempt, seconds since the epoch; 0.0: final
    better: str = ""  # MOVED: the URL that the link should use


def net_seems_down(hosts: int, silent: int) -> bool:
    """Whether the silent hosts of other sites indicate a local network failure. A probe decides: see `api.checking`."""
    return hosts >= NET_HOSTS and silent >= NET_SHARE * hosts


def judge(evidence: Evidence, *, spacing_s: float) -> Judgement:
    """The verdict on a target. spacing_s: least time between two failures that confirm each other."""
    if evidence.reason is Reason.ROBOTS:
        return Judgement(Verdict.REFUSED, "robots.txt disallows it")
    if evidence.reason is Reason.BOT_WALL:
        return Judgement(Verdict.REFUSED, _BOT_WALL)
    if not evidence.attempts:
        return Judgement(Verdict.UNCHECKED, _NO_REQUEST.get(evidence.reason, "not requested"))
    attempts = [attempt for attempt in evidence.attempts if attempt.cause not in _OURS]
    if not attempts:
        return Judgement(Verdict.UNCHECKED, _OURS[evidence.attempts[-1].cause or Cause.BUG])
    latest = _judge_attempt(attempts[-1])
    if latest.verdict is Verdict.REFUSED:
        return latest
    if latest.verdict is Verdict.OK:
        return _judge_answer(evidence, latest.why)
    if evidence.circle:
        latest = Judgement(Verdict.BROKEN, "its redirects form a loop")
    return _confirm(attempts, latest, spacing_s)


def _judge_attempt(attempt: Attempt) -> Judgement:
    """The verdict of a single attempt."""
    status, cause = attempt.status, attempt.cause
    if attempt.cut is Cut.BOT_WALL:
        return Judgement(Verdict.REFUSED, _BOT_WALL)
    if cause in _UNREACHABLE:
        return Judgement(Verdict.BROKEN, _UNREACHABLE[cause])
    if cause is Cause.TLS:
        return Judgement(Verdict.SUSPECT, "its TLS certificate or connection is invalid")
    if cause in _FAILING:
        return Judgement(Verdict.SERVER_ERROR, _FAILING[cause])
    if status in REFUSALS:
        return Judgement(Verdict.REFUSED, f"it answers {status}: refused to crawlers, perhaps not to browsers")
    if status in PASSING or 500 <= status < 600:
        return Judgement(Verdict.SERVER_ERROR, f"it answers {status}")
    if 400 <= status < 500:
        return Judgement(Verdict.BROKEN, f"it answers {status}")
    if status in REDIRECTS:
        return Judgement(Verdict.BROKEN, f"it answers {status} without a valid target")
    if attempt.cut in _CUT_SHORT:
        return Judgement(Verdict.SUSPECT, _CUT_SHORT[attempt.cut])
    if 200 <= status < 400:
        return Judgement(Verdict.OK, f"it answers {status}")
    return Judgement(
        Verdict.SUSPECT, f"it answers {status}, which is not a valid status" if status else "no answer is recorded"
    )


def _confirm(attempts: Sequence[Attempt], latest: Judgement, spacing_s: float) -> Judgement:
    """Confirms a failure if there was another at least spacing_s earlier, with no successful answer in between."""
    last = since = attempts[-1].at
    for attempt in reversed(attempts):
        if _judge_attempt(attempt).verdict in (Verdict.OK, Verdict.REFUSED):
            break
        since = min(since, attempt.at)
    if since < last and last - since >= spacing_s:
        return latest
    return Judgement(Verdict.SUSPECT, f"{latest.why}; to be checked again", ask_again_at=since + spacing_s)


def _judge_answer(evidence: Evidence, why: str) -> Judgement:
    """The target answered: is it the page, and at the URL of the link?"""
    if evidence.looks_missing:
        return Judgement(Verdict.MISSING, evidence.looks_missing)
    if evidence.fragment is FragmentVerdict.MISSING:
        return Judgement(Verdict.BROKEN, "the page exists, the anchor does not")
    hops = len(evidence.hops)
    if hops >= LONG_CHAIN:
        why += f" after {hops} redirects, at which many clients give up"
    better = _permanent_target(evidence.hops)
    if better:
        return Judgement(Verdict.MOVED, f"moved permanently; {why}", better=better)
    return Judgement(Verdict.OK, why)


def _permanent_target(hops: Sequence[Hop]) -> str:
    """The target of the leading permanent redirects; '' if the first is temporary.

    Links should not skip a temporary redirect.
    """
    place = ""
    for hop in hops:
        if hop.status not in PERMANENT:
            break
        place = hop.target
    return place
