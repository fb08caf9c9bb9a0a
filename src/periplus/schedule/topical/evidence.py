"""What speaks for a page that waits? Its evidence, as numbers that can be weighed."""

from __future__ import annotations

import numpy as np

from periplus.schedule.topical.seen import MOST_PARENTS, WORD_SLOTS, Floats, Numbers, Seen

NAMES = (
    *("always", "parents", "best parent", "links", "links from other hosts", "parents' yield", "best yield", "host", "directory", "pages of host"),
    *("promise", "words", "best word", "credit", "promise under good parents", "nothing read of host"),
)


def evidence(seen: Seen, numbers: Numbers) -> Floats:
    """float64[pages, NAMES]. Shares are log odds, so that what is independent adds up."""
    prior = seen.prior
    some = np.full(len(numbers), prior)
    links = seen.links[numbers]
    parents = (seen.worth_sum[numbers] + 0.5 * prior) / (links + 0.5)
    inherited, best = _yields(seen, numbers, prior)
    host = seen.of_host.mean(seen.host[numbers], some, 2.0)
    directory = seen.of_directory.mean(seen.directory[numbers], host, 1.0)
    words, best_word = _words(seen, numbers, prior)
    promise = seen.promise[numbers]
    of_host = seen.of_host.pages[seen.host[numbers]]
    base = _odds(np.array(prior))
    columns = (
        np.ones(len(numbers)),
        _odds(parents) - base,
        seen.worth_most[numbers],
        np.log1p(links),
        np.log1p(seen.from_others[numbers]),
        _odds(inherited) - base,
        _odds(best) - base,
        _odds(host) - base,
        _odds(directory) - _odds(host),
        np.log1p(of_host),
        _odds(promise),
        words,
        best_word,
        seen.credit[numbers],
        promise * parents,
        (of_host == 0).astype(np.float64),
    )
    return np.stack(columns, axis=1)


def _odds(share: Floats) -> Floats:
    kept = np.clip(share, 0.003, 0.997)
    found: Floats = np.log(kept / (1 - kept))
    return found


def _yields(seen: Seen, numbers: Numbers, prior: float) -> tuple[Floats, Floats]:
    """(mean, greatest) share of relevant pages among those that a page's parents link to and that were read."""
    parents = seen.parents[numbers].astype(np.int64)
    there = parents >= 0
    safe = np.where(there, parents, 0)
    expected = 0.5 * prior + 0.5 * np.maximum(0.3 * seen.worth[safe], prior)  # a relevant page links to relevant ones rather
    shares = seen.of_parent.mean(safe, expected, 3.0)
    count = np.maximum(there.sum(axis=1), 1)
    some = there.any(axis=1)
    mean = np.where(some, (shares * there).sum(axis=1) / count, prior)
    most = np.where(some, (shares * there).max(axis=1, initial=0.0), prior)
    assert shares.shape[1] == MOST_PARENTS
    return mean, most


def _words(seen: Seen, numbers: Numbers, prior: float) -> tuple[Floats, Floats]:
    """(sum, greatest) of what a page's words add to the log odds, by the pages read that had them."""
    slots = seen.words[numbers].astype(np.int64)
    base = _odds(np.array(prior))
    said = _odds(seen.of_word.mean(slots, np.full(slots.shape, prior), 1.5)) - base
    said = np.where(slots < WORD_SLOTS, said, 0.0)
    count = np.maximum((slots < WORD_SLOTS).sum(axis=1), 1)
    return said.sum(axis=1) / np.sqrt(count), said.max(axis=1)


# Fitted (logistic regression) on crawls of six topics of a text graph and of two made webs, none of them among those that are reported:
# docs/topical-crawl.md. Learning them further while crawling gained nothing; what is learned there are the shares.
WEIGHTS = np.array([-1.45, 0.29, 1.41, -0.26, -0.28, 0.56, 0.6, 1.9, 0.15, 0.3, 0.8, 1.25, -0.15, 0.2, 3.84, -0.86])


def weighed(seen: Seen, numbers: Numbers) -> Floats:
    """The log odds that a page is on the topic, by all the evidence."""
    found: Floats = evidence(seen, numbers) @ WEIGHTS
    return found
