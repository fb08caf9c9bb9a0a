"""The fast method and the plain transcription of its rules agree on any site."""

import random

import numpy as np
import pytest

from periplus.analyse import shorkin
from periplus.analyse.shorkin import clusters_of
from periplus.model.duplicates import TemplateRules
from plain_shorkin import plain_clusters


def random_site(rng):
    """Pages as chains: templates with changes, unique text, some duplicate pages.

    Short lengths cause ties.
    """
    words = [at << 32 | rng.randint(1, rng.choice([3, 60])) for at in range(rng.choice([15, 40, 200]))]
    templates = [[word for word in words if rng.random() < 0.5] for _ in range(rng.randint(1, 3))]
    pages = []
    for _ in range(rng.randint(0, 20)):
        lost, gained = rng.choice([0, 0.05, 0.3]), rng.choice([0, 0.05, 0.3])
        page = {word for word in rng.choice(templates) if rng.random() >= lost} | {
            word for word in words if rng.random() < gained
        }
        page |= {(1000 + rng.randrange(10**6)) << 32 | rng.randint(1, 60) for _ in range(rng.choice([0, 3, 40]))}
        pages.append(pages[-1] if pages and rng.random() < 0.1 else page)
    return pages


@pytest.mark.parametrize("seed", range(12))
def test_fast_and_plain_agree_on_random_sites(seed, monkeypatch):
    """The bounds of optimisations are set so low that even twenty pages use every branch."""
    for at in range(20):
        rng = random.Random(seed * 1000 + at)
        monkeypatch.setattr(shorkin, "KINDS_MOST", rng.choice([1, 3, 1024]))
        monkeypatch.setattr(shorkin, "RARE_PAGES", rng.choice([0, 2, 16]))
        monkeypatch.setattr(shorkin, "RARE_SHARE", rng.choice([1, 4, 64]))
        monkeypatch.setattr(shorkin, "TRIALS", rng.choice([0, 3, 60]))
        monkeypatch.setattr(shorkin, "FIRST_LOOK", rng.choice([1, 64]))
        pages, rules = (
            random_site(rng),
            TemplateRules(duplicates=rng.choice([70, 70, 40, 100]), cluster_pages=rng.choice([4, 4, 3])),
        )
        fast = clusters_of([np.array(sorted(page), np.uint64) for page in pages], rules)
        plain = plain_clusters([frozenset(page) for page in pages], rules)
        assert [(cluster.pages, frozenset(cluster.navigation.tolist())) for cluster in fast] == plain
