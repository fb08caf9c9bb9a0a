"""Judges a link's target after all that was seen of it: chains of redirects, and error pages that answer 200."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from urllib.parse import unquote, urlsplit

import numpy as np

from periplus.analyse.duplicates import Hashes, jaccard
from periplus.analyse.linkgraph import places_in_sorted
from periplus.document.digest import without_marks
from periplus.model.arrays import Ints, Ints16, Ints32, Mask
from periplus.model.audit import FragmentVerdict, Verdict
from periplus.model.visit import Cause, Cut, Reason
from periplus.values import frozen


class ChainRole(StrEnum):
    """A row's place in its chain."""

    REQUESTED = "requested"
    INTERMEDIATE = "intermediate"
    FINAL = "final"
    LOOP = "loop"  # stood in the chain before: the redirects never end


@frozen
class ChainRow:
    """One URL of one chain of redirects. A chain's rows follow one another; order counts from 0."""

    chain_id: int  # the id of the URL that was asked for, so it means the same in the next run
    order: int
    url_id: int
    status: int  # of a redirect its own, of the last URL what it answered; 0: not asked
    role: ChainRole


@frozen
class RedirectColumns:
    """r redirects as they are known: source answers status and names target. At most one a source, in any order."""

    sources: Ints
    targets: Ints
    statuses: Ints16


@frozen
class ChainEnds:
    """Where each redirect ends, in the order of RedirectColumns."""

    ends: Ints  # the last URL; in a loop: some URL of it
    hops: Ints32  # redirects until there, 1 or more
    loops: Mask  # never ends
    permanent: Mask  # each hop is a 301 or 308


def chain_ends(redirects: RedirectColumns) -> ChainEnds:
    """Follows all redirects at once, twice as far in each round: O(r log r) however long the chains are."""
    order = np.argsort(redirects.sources, kind="stable")
    sources, ends = redirects.sources[order], redirects.targets[order].copy()
    permanent = np.isin(redirects.statuses[order], (301, 308))
    hops = np.ones(len(order), np.int64)
    following = places_in_sorted(sources, ends)
    for _ in range(len(order).bit_length()):
        on = np.flatnonzero(following >= 0)
        if not on.size:
            break
        step = following[on]
        ends[on], hops[on], permanent[on] = (
            ends[step],
            np.minimum(hops[on] + hops[step], len(order)),
            permanent[on] & permanent[step],
        )
        following[on] = following[step]
    loops = following >= 0
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return ChainEnds(ends[back], hops[back].astype(np.int32), loops[back], permanent[back])


def chain_rows(
    redirects: RedirectColumns, final_status: dict[int, int], requested: Ints | None = None
) -> Iterator[ChainRow]:
    """The chains as tidy rows, one a URL, the requested one first. Cost: the rows.

    requested: ids of requested URLs; None: those redirects that no other redirect leads to, so that each chain is told
    once from its beginning, and of each loop that nothing leads into, its smallest id. final_status: what ids that do
    not redirect answered; not in it: 0.
    """
    hop = {source: (target, status) for source, target, status in zip(*_lists(redirects), strict=True)}
    for start in _starts(hop) if requested is None else requested.tolist():
        if start not in hop:
            continue
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


def _lists(redirects: RedirectColumns) -> tuple[list[int], list[int], list[int]]:
    return redirects.sources.tolist(), redirects.targets.tolist(), redirects.statuses.tolist()


def _starts(hop: dict[int, tuple[int, int]]) -> Iterator[int]:
    """Ascending: redirects that nothing leads to, then one of each loop that is reached from none of these."""
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


# Words are without marks and in lower case, as `without_marks` leaves them.

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
"""Each is a whole title, heading or part of a title: `How to mend 404 pages` is none."""

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
"""What may stand before a phrase: `Oops! Page not found`, `404: Page not found`."""


# A false alarm costs more than a missed page, so there are three proofs and no weighing of hints: the page has the
# text of what the same host sends for a URL that cannot exist; it calls itself an error page, and is short; a deep
# URL is sent to the home page, where the host sends what cannot exist as well. A host that sends one text for
# everything proves nothing by it.

# with menus and footer: 6,873 pages of manuals have a median of 4,130, an error page has rarely 3,000
TEXT_CHARS = 3_000
SAME = 0.9  # Jaccard of shingles: an error page may repeat the URL it was asked for
SAME_SHORT = 20  # distinct shingles; shorter pages are the same only if title and text are, the URL aside
PROBE_WORDS = "periplus-no-such-page"

_PARTS = re.compile(r"\s+[|\-–—·:»«•/~]+\s+|\s*[|»«•·]\s*|:\s+|\s+[–—]\s+")
_EDGES = " \t\n.!?,;:…'\"()[]-–—/|#"
_PHRASES = frozenset(without_marks(phrase.strip()) for phrase in PHRASES if phrase.strip())
_OPENING = re.compile(rf"(?:{'|'.join(map(re.escape, map(without_marks, OPENINGS)))})\b[\s.!?,;:…-]*")
_HOME_FILES = re.compile(r"/(?:(?:index|default|home)(?:\.[a-z]{2,5})?/?)?\Z", re.IGNORECASE)


@frozen
class PageProbe:
    """What a page looks like."""

    url: str  # that was asked for
    final_url: str  # that answered: another one after redirects
    title: str
    h1: str
    text: str
    shingles: Hashes  # of `without_address`, from `duplicates.shingles`


@frozen
class HostHabits:
    """How one host treats what does not exist, as far as that was tried. Each answered 200, perhaps after redirects."""

    # of URLs that cannot exist, from `probe_url`; those that answered otherwise left out
    probes: Sequence[PageProbe] = ()
    home: PageProbe | None = None  # its home page, to know hosts that send one text for everything


def probe_url(url: str, token: str) -> str:
    """A URL beside this one that cannot exist: same folder, same ending.

    token: chance, so that nobody can have prepared for it.
    """
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    _, dot, ending = name.rpartition(".")
    return (
        f"{parts.scheme}://{parts.netloc}{folder}/"
        f"{PROBE_WORDS}-{token}{dot + ending if dot and len(ending) <= 5 else ''}"
    )


def looks_missing(page: PageProbe, habits: HostHabits) -> str:
    """Why a page that answered 200 seems an error page, as half a sentence; empty: it does not."""
    if PROBE_WORDS in page.url:
        return ""
    if sent_home(page, habits):
        return "it leads to the home page, as URLs do that cannot exist"
    for probe in habits.probes:
        if _leads_home(probe) or (habits.home is not None and _same(habits.home, probe)):
            continue  # one text for everything, as applications in the browser have: it proves nothing
        if _same(page, probe):
            return "it has the text of the page that the host sends for URLs that cannot exist"
    if len(page.text) <= TEXT_CHARS and not _is_home(page.final_url):
        for where, words in (("title", page.title), ("heading", page.h1)):
            if says_missing(words) and not (
                where == "heading" and len(page.title) > 0 and _is_of(page.title, page.url)
            ):
                return f"its {where} says: {words.strip()[:100]}"
    return ""


def says_missing(words: str) -> bool:
    """Whether a title or heading, or a part of it between dashes and bars, is that of an error page."""
    plain = without_marks(words)
    return any(_is_phrase(part) for part in (plain, *_PARTS.split(plain)))


def _is_phrase(part: str) -> bool:
    part = " ".join(part.split()).strip(_EDGES)
    if part in _PHRASES:
        return True
    shorter = _OPENING.sub("", part, count=1).strip(_EDGES)
    return shorter in _PHRASES or _OPENING.sub("", shorter, count=1).strip(_EDGES) in _PHRASES


def _is_of(title: str, url: str) -> bool:
    """Whether the title has a word of the URL's last part: then the page is about what was asked for."""
    words = set(re.findall(r"\w{4,}", without_marks(unquote(urlsplit(url).path.rpartition("/")[2]))))
    return not words.isdisjoint(re.findall(r"\w{4,}", without_marks(title)))


def sent_home(page: PageProbe, habits: HostHabits) -> bool:
    """Whether a deep URL was redirected to the home page of its host or domain,
    where a probe was redirected as well.
    """
    return _leads_home(page) and any(
        _leads_home(probe) and _address(probe.final_url) == _address(page.final_url) for probe in habits.probes
    )


def _leads_home(page: PageProbe) -> bool:
    return page.url != page.final_url and _is_home(page.final_url) and not _is_home(page.url)


def _is_home(url: str) -> bool:
    return bool(_HOME_FILES.fullmatch(urlsplit(url).path or "/"))


def _address(url: str) -> str:
    return urlsplit(url)._replace(query="", fragment="", scheme="").geturl()


def _same(one: PageProbe, other: PageProbe) -> bool:
    """Whether two pages have one text, the URL that was asked for aside."""
    if min(len(one.shingles), len(other.shingles)) >= SAME_SHORT:
        return jaccard(one.shingles, other.shingles) >= SAME
    titles = without_address(one.title, one.url), without_address(other.title, other.url)
    return (
        bool(one.text)
        and titles[0] == titles[1]
        and without_address(one.text, one.url) == without_address(other.text, other.url)
    )


def without_address(text: str, url: str) -> str:
    """The text without the address that was asked for, whole or in part, encoded or not: error pages repeat it."""
    path = urlsplit(url).path
    for address in (url, path, path.rpartition("/")[2]):
        for written in (address, unquote(address)):
            if len(written) > 1:
                text = text.replace(written, "")
    return " ".join(text.split())


# Refused is not broken, one failure is no alarm, and what was not asked for is not judged. In this order:
# what cannot be asked at all; what was not asked; the latest attempt, if it brought an answer that settles the matter;
# two failures far enough apart; else suspect, with the time of the next attempt.

PERMANENT = frozenset({301, 308})
# 405 and 406 to a plain GET are walls against robots
REFUSALS = frozenset({401, 402, 403, 405, 406, 407, 429, 451, 999})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PASSING = frozenset({408, 421, 425})  # 4xx that speak of this exchange, not of the page
LONG_CHAIN = 5  # hops; crawlers for search engines give up after 5 to 10 (RFC 9309 2.3.1.2 asks for at least five)
NET_HOSTS = 3  # of other sites: one or two that are silent are more often gone than a sign of our own net
NET_SHARE = 0.9  # of them silent: on a machine without a net one mirror of dozens still answered
SILENT = frozenset({Cause.NAME, Cause.CONNECT, Cause.TIMEOUT})
_GONE = {Cause.NAME: "there is no host of that name", Cause.CONNECT: "nothing answers at that host and port"}
_FAILING = {
    Cause.TIMEOUT: "it did not answer in time",
    Cause.FIRST_BYTE: "it took the question and sent nothing",
    Cause.RESET: "the connection was lost",
    Cause.NOT_HTTP: "what it sends is not HTTP",
    Cause.HEADER_LIMIT: "its header is endless",
}
_OURS = {
    Cause.PRIVATE: "a private address, not asked",
    Cause.PROXY: "the proxy failed",
    Cause.CANCELLED: "we stopped",
    Cause.BUG: "a fault of ours",
}
_CUT_SHORT = {
    Cut.SHORT: "the body ended before its declared length",
    Cut.BAD_ENCODING: "the body cannot be decompressed",
    Cut.RATIO_LIMIT: "the body swells beyond all measure when decompressed",
    Cut.TIME_LIMIT: "the body did not end in time",
}
_NOT_ASKED = {
    Reason.ROBOTS_UNREACHABLE: "robots.txt is out of reach, which forbids everything",
    Reason.HOST_DOWN: "its host was given up before its turn came",
    Reason.PRIVATE: "a private address, not asked",
    Reason.BUG: "a fault of ours",
    Reason.SCHEME: "no crawler fetches this scheme",
}


@frozen
class Attempt:
    """One GET of the target, or of what its redirects lead to. A failure of its host (no such name) counts as one."""

    at: float  # seconds since the epoch, UTC
    status: int  # of the last answer; 0: none came
    cause: Cause | None = None  # why none came
    cut: Cut = Cut.NONE


@frozen
class Hop:
    """One redirect on the way, and where it leads."""

    status: int
    target: str


@frozen
class Evidence:
    """All that is known of one link's target."""

    reason: Reason = Reason.OK  # of the URL, in the collection
    attempts: Sequence[Attempt] = ()  # oldest first
    hops: Sequence[Hop] = ()  # redirects of the latest attempt, in order
    # these come back to where they were: the status of such an attempt is that of its last redirect
    circle: bool = False
    looks_missing: str = ""  # why it seems an error page, from `analyse.verdicts`
    problem: str = ""  # why it can never work: no URL, a mail address that is none
    fragment: FragmentVerdict = FragmentVerdict.TOP


@frozen
class Judgement:
    """The verdict, and why, as half a sentence."""

    verdict: Verdict
    why: str
    ask_again_at: float = 0.0  # seconds since the epoch: not settled before a further attempt then; 0.0: settled
    better: str = ""  # MOVED: what the link should name


def net_seems_down(hosts: int, silent: int) -> bool:
    """Whether so many silent hosts of other sites speak against our own net. A probe decides: see `api.checking`."""
    return hosts >= NET_HOSTS and silent >= NET_SHARE * hosts


def judged(evidence: Evidence, *, spacing_s: float) -> Judgement:
    """The verdict on a target. spacing_s: between two failures that shall make one verdict."""
    if evidence.problem:
        return Judgement(Verdict.BROKEN, evidence.problem)
    if evidence.reason is Reason.ROBOTS:
        return Judgement(Verdict.REFUSED, "robots.txt disallows it")
    if not evidence.attempts:
        return Judgement(Verdict.UNCHECKED, _NOT_ASKED.get(evidence.reason, "not asked for"))
    attempts = [attempt for attempt in evidence.attempts if attempt.cause not in _OURS]
    if not attempts:
        return Judgement(Verdict.UNCHECKED, _OURS[evidence.attempts[-1].cause or Cause.BUG])
    latest = _of_attempt(attempts[-1])
    if latest.verdict is Verdict.REFUSED:
        return latest
    if latest.verdict is Verdict.OK:
        return _alive(evidence, latest.why)
    if evidence.circle:
        latest = Judgement(Verdict.BROKEN, "its redirects lead in a circle")
    return _confirmed(attempts, latest, spacing_s)


def _of_attempt(attempt: Attempt) -> Judgement:
    """What one attempt says by itself."""
    status, cause = attempt.status, attempt.cause
    if cause in _GONE:
        return Judgement(Verdict.BROKEN, _GONE[cause])
    if cause is Cause.TLS:
        return Judgement(Verdict.SUSPECT, "its certificate or encryption does not hold")
    if cause in _FAILING:
        return Judgement(Verdict.SERVER_ERROR, _FAILING[cause])
    if status in REFUSALS:
        return Judgement(Verdict.REFUSED, f"it answers {status}: refused to us, perhaps not to others")
    if status in PASSING or 500 <= status < 600:
        return Judgement(Verdict.SERVER_ERROR, f"it answers {status}")
    if 400 <= status < 500:
        return Judgement(Verdict.BROKEN, f"it answers {status}")
    if status in REDIRECTS:
        return Judgement(Verdict.BROKEN, f"it answers {status} and leads nowhere")
    if attempt.cut in _CUT_SHORT:
        return Judgement(Verdict.SUSPECT, _CUT_SHORT[attempt.cut])
    if 200 <= status < 400:
        return Judgement(Verdict.OK, f"it answers {status}")
    return Judgement(Verdict.SUSPECT, f"it answers {status}, which is no answer" if status else "no answer is recorded")


def _confirmed(attempts: Sequence[Attempt], latest: Judgement, spacing_s: float) -> Judgement:
    """A failure stands when there was another at least spacing_s before it, and no answer between them."""
    last = since = attempts[-1].at
    for attempt in reversed(attempts):
        if _of_attempt(attempt).verdict in (Verdict.OK, Verdict.REFUSED):
            break
        since = min(since, attempt.at)
    if since < last and last - since >= spacing_s:
        return latest
    return Judgement(Verdict.SUSPECT, f"{latest.why}; to be asked again", ask_again_at=since + spacing_s)


def _alive(evidence: Evidence, why: str) -> Judgement:
    """An answer came: is it the page, and where the link says?"""
    if evidence.looks_missing:
        return Judgement(Verdict.MISSING, evidence.looks_missing)
    if evidence.fragment is FragmentVerdict.MISSING:
        return Judgement(Verdict.BROKEN, "the page is there, the place on it is not")
    hops = len(evidence.hops)
    if hops >= LONG_CHAIN:
        why += f" after {hops} redirects, where many programs give up"
    better = _moved_to(evidence.hops)
    if better:
        return Judgement(Verdict.MOVED, f"moved for good; {why}", better=better)
    return Judgement(Verdict.OK, why)


def _moved_to(hops: Sequence[Hop]) -> str:
    """How far the redirects are permanent from the first on; empty: not at all.

    What a temporary one hides is not to be linked to.
    """
    place = ""
    for hop in hops:
        if hop.status not in PERMANENT:
            break
        place = hop.target
    return place
