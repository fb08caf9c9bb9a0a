"""How does what concerns another worker's host stand in the inbox? One kind of row for URLs, errands and findings that fell."""

from __future__ import annotations

from psycopg.rows import TupleRow

from periplus.model.frontier import Candidate, Errand
from periplus.model.visit import Purpose, Reason, Request
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.store.postgres.schema import shard_of

INBOX = "shard, host, site, url_id, text, reason, layer, rule, hops, in_sitemap, page_id, learned, purpose, about, attempt, in_s, added"
RETRACT = "retract"  # in place of a purpose: a learned finding fell, and what was skipped by it waits again


def inbox_row(candidate: Candidate, now: float) -> tuple[object, ...]:
    return (
        shard_of(candidate.site), candidate.host, candidate.site, candidate.url_id, candidate.url, candidate.reason.value, candidate.layer, candidate.rule,
        candidate.hops, int(candidate.in_sitemap), candidate.page, int(candidate.learned), "", "", 0, 0.0, now,
    )  # fmt: skip


def errand_row(errand: Errand, now: float) -> tuple[object, ...]:
    request = errand.request
    return (
        shard_of(errand.site), errand.host, errand.site, 0, request.url, "", errand.layer, "", request.hops, 0, None, 0, request.purpose.value,
        request.about, request.attempt, errand.in_s, now,
    )  # fmt: skip


def candidate_of(row: TupleRow) -> Candidate:
    """What `inbox_row` was given."""
    _, host, site, url_id, text, reason, layer, rule, hops, in_sitemap, page_id, learned, *_ = row
    known = (Reason(reason), layer, rule, hops, bool(in_sitemap), page_id, bool(learned))
    return Candidate(Url(text), UrlId(url_id), HostKey(host), SiteKey(site), *known)


def errand_of(row: TupleRow) -> Errand:
    """What `errand_row` was given."""
    _, host, site, _, text, _, layer, _, hops, _, _, _, purpose, about, attempt, in_s, _ = row
    return Errand(HostKey(host), SiteKey(site), Request(Url(text), Purpose(purpose), None, hops, attempt, about), layer, in_s)


def retract_row(site: SiteKey, finding: str, now: float) -> tuple[object, ...]:
    return (shard_of(site), "", site, 0, finding, "", None, "", 0, 0, None, 0, RETRACT, "", 0, 0.0, now)
