"""How are the weights learnt that are shipped? And what do they score on sites that they have not seen?

    CORPORA=... python quality/extraction/train.py [--held-out FOLDS]

Needs catboost, which is no dependency of the project: it grows the trees, NumPy does the rest. Writes
`weights.json`; with --held-out it writes nothing and prints the scores of each set, no page of a site having been
used for the weights that judge the site.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))  # beside this file, however it is started

import gold
import scoring
from labelling import shares
from measure import means
from net_training import Example, Learnt, forward, learn, scaled

from periplus.analyse.content import features, marking
from periplus.analyse.content.evidence import Pages, SiteEvidence, facts, traces_of
from periplus.document.blocks import blocks_of
from periplus.document.reader import read_page
from periplus.model.page import Blocks, Part

Floats = npt.NDArray[np.float32]
TABLE = Path(__file__).parents[2] / "src/periplus/analyse/content/weights.json"
THRESHOLD = 0.40  # the best of 0.36 to 0.52 for the mean of the five sets, held out
TREES = 300
# so that small sets and hard ones are heard
SET_WEIGHT = {"cleanportal": 2.0, "debdocs": 2.0, "wcxb-dev350": 3.0, "cleaneval": 0.4}
PAGES_OF_A_SITE = 25
LEAST_SITES = 6  # that use a word in their paths, for the word to have a weight
ALONE_SHARE = 0.4  # of pages that are shown with little or nothing known of their site, too


class Row(NamedTuple):
    """One page as it is learnt from, under one state of knowledge of its site."""

    site: int
    page: int
    whole: bool  # whether all of its site was known
    measures: Floats  # [n, m]
    share: Floats
    words: Floats
    gold: str
    set_name: str
    blocks: Blocks
    counts: bool


def name_votes(pages: list[tuple[Blocks, Floats, Floats]]) -> dict[str, float]:
    """One site's log-odds for content of each word in its paths."""
    content: dict[str, float] = defaultdict(float)
    every: dict[str, float] = defaultdict(float)
    for blocks, share, words in pages:
        total = max(float(words.sum()), 1.0)
        for block, part, size in zip(blocks, share.tolist(), words.tolist(), strict=True):
            for word in {word for step in facts(block.path).steps for word in step.words} if size else ():
                content[word] += part * size / total
                every[word] += size / total
    doubt = 0.02 * len(pages)
    rates = {word: (content[word] + doubt / 2) / (every[word] + doubt) for word in every}
    return {word: math.log(rate / (1 - rate)) for word, rate in rates.items()}


def name_weights(votes: Sequence[dict[str, float]]) -> dict[str, float]:
    """The sites' mean vote for each word, drawn towards none."""
    prior = sum(map(math.fsum, (vote.values() for vote in votes))) / max(sum(map(len, votes)), 1)
    sites = Counter(word for vote in votes for word in vote)
    sums: dict[str, float] = defaultdict(float)
    for vote in votes:
        for word, odds in vote.items():
            sums[word] += odds - prior
    return {word: sums[word] / (count + 4) for word, count in sites.items() if count >= LEAST_SITES}


def rows() -> tuple[list[Row], dict[str, float]]:
    """All pages measured, and the weights of words. A site's own votes are left out when its pages are measured."""
    sites: list[tuple[str, list[tuple[Blocks, Floats, Floats]], list[str], bool]] = []
    for name in gold.SETS:
        for pages in gold.by_site(gold.read(name)).values():
            read = [blocks_of(read_page(page.html)) for page in pages]
            sites.append(
                (
                    name,
                    [(blocks, *shares(blocks, page.gold)) for blocks, page in zip(read, pages, strict=True)],
                    [page.gold for page in pages],
                    gold.counts(name, pages),
                )
            )
    votes = [name_votes(pages) for _, pages, _, _ in sites]
    rng, found, number = random.Random(1), [], 0
    for at, (name, pages, golds, counts) in enumerate(sites):
        names = marking.StepWeights(name_weights(votes[:at] + votes[at + 1 :]))
        whole = _learnt([blocks for blocks, _, _ in pages])
        for (blocks, share, words), text in zip(pages, golds, strict=True):
            number += 1
            if not blocks:
                continue
            page = Pages([blocks], [traces_of(blocks)])
            seen = [(True, whole.seen(blocks, counted=True))]
            if len(pages) > 1:
                few = rng.sample(
                    [other for other, _, _ in pages if other is not blocks],
                    min(rng.choice((0, 1, 2, 3)), len(pages) - 1),
                )
                seen.append((False, _learnt(few).seen(blocks, counted=False)))
            for is_whole, known in seen:
                found.append(
                    Row(
                        at,
                        number,
                        is_whole,
                        features.matrix(page, known, names).T.copy(),
                        share,
                        words,
                        text,
                        name,
                        blocks,
                        counts,
                    )
                )
    return found, name_weights(votes)


def _learnt(pages: Sequence[Blocks]) -> SiteEvidence:
    evidence = SiteEvidence()
    for blocks in pages:
        evidence.learn(blocks)
    return evidence


def chosen(all_rows: Sequence[Row], rng: np.random.Generator) -> list[Row]:
    """At most so many pages of a site, mostly as they look when all of the site is known."""
    by_site: dict[int, list[Row]] = defaultdict(list)
    for row in all_rows:
        if row.whole or rng.random() < ALONE_SHARE:
            by_site[row.site].append(row)
    return [site[at] for site in by_site.values() for at in rng.permutation(len(site))[: PAGES_OF_A_SITE * 3 // 2]]


def grown(all_rows: Sequence[Row], seed: int = 0) -> object:
    """Trees that tell the share of a block's words that is content."""
    rng = np.random.default_rng(seed)
    parts: list[tuple[Floats, Floats, Floats]] = []
    for row in chosen(all_rows, rng):
        weight = np.minimum(row.words / (len(row.gold.split()) + 20), 0.5) * SET_WEIGHT.get(row.set_name, 1.0)
        # small blocks are many and weigh little: a few of them stand for all
        chance = np.minimum(weight / 0.03 + 0.02, 1)
        taken = (row.words > 0) & (rng.random(len(weight)) < chance)
        parts.append((row.measures[taken], row.share[taken], (weight / chance)[taken]))
    measures, share, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    catboost = import_module("catboost")
    model = catboost.CatBoostClassifier(
        iterations=TREES, depth=6, learning_rate=0.1, loss_function="CrossEntropy", border_count=32, l2_leaf_reg=5,
        random_seed=seed,
        bootstrap_type="Bernoulli", subsample=0.7, rsm=0.25, verbose=0, allow_writing_files=False,
    )  # fmt: skip
    return model.fit(catboost.Pool(measures, share, weight=weight / weight.mean()))


def tree_scores(model: object, some: Sequence[Row]) -> list[Floats]:
    """What the trees say of each page."""
    # catboost's
    odds = model.predict(np.concatenate([row.measures for row in some]), prediction_type="RawFormulaVal")  # type: ignore[attr-defined]
    ends = np.cumsum([len(row.words) for row in some])[:-1]
    return [(1 / (1 + np.exp(-part))).astype(np.float32) for part in np.split(odds, ends)]


def example(row: Row, score: Floats) -> Example:
    """A page as the net sees it."""
    measures = np.concatenate(
        (row.measures, marking.matrix(Pages([row.blocks], [traces_of(row.blocks)]), score).T), axis=1
    )
    return Example(measures, row.share, row.words, len(row.gold.split()), SET_WEIGHT.get(row.set_name, 1.0))


def net_of(pairs: Sequence[tuple[Row, Example]]) -> Learnt:
    """The net that learns from these pages. The trees' scores must be held out, else it would trust them too much."""
    of_row = {id(row): shown for row, shown in pairs}
    return learn(lambda rng: [of_row[id(row)] for row in chosen([row for row, _ in pairs], rng)])


def main() -> None:
    """Learn, then write or score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="score sites that were not learnt from; write nothing")
    parser.add_argument("--folds", type=int, default=4)
    args = parser.parse_args()
    all_rows, names = rows()
    fold = {
        site: at % args.folds
        for at, site in enumerate(
            random.Random(5).sample(sorted({row.site for row in all_rows}), len({row.site for row in all_rows}))
        )
    }
    pairs: list[tuple[Row, Example]] = []
    for number in range(args.folds):
        model = grown([row for row in all_rows if fold[row.site] != number])
        some = [row for row in all_rows if fold[row.site] == number]
        pairs += [(row, example(row, score)) for row, score in zip(some, tree_scores(model, some), strict=True)]
    if args.held_out:
        print(json.dumps(means(held_out(pairs, fold, args.folds)), indent=1))
    else:
        write(grown(all_rows), net_of(pairs), names)


def held_out(pairs: Sequence[tuple[Row, Example]], fold: dict[int, int], folds: int) -> dict[str, list[float]]:
    """Word F1 of the pages that count, each by a net that did not learn from its site."""
    scores: dict[str, list[float]] = defaultdict(list)
    for number in range(folds):
        net = net_of([(row, shown) for row, shown in pairs if fold[row.site] != number])
        for row, shown in pairs:
            if fold[row.site] == number and row.whole and row.counts:
                share = forward(net.depths, scaled(shown.measures, net.mean, net.spread))[1]
                parts = [Part.CONTENT if value > THRESHOLD else Part.NAVIGATION for value in share.tolist()]
                scores[row.set_name].append(scoring.word_f1(scoring.kept(row.blocks, parts), scoring.words(row.gold)))
    return scores


def write(model: object, net: Learnt, names: dict[str, float]) -> None:
    """Store all weights as one table."""
    scratch = TABLE.with_suffix(".trees")
    model.save_model(str(scratch), format="json")  # type: ignore[attr-defined]  # catboost's
    grown_trees = json.loads(scratch.read_text(encoding="utf-8"))
    scratch.unlink()
    TABLE.write_text(
        json.dumps(table(grown_trees, net, names), separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8"
    )


def table(
    trees: dict[str, list[dict[str, list[dict[str, float]]]]], net: Learnt, names: dict[str, float]
) -> dict[str, object]:
    """What `periplus.analyse.content.marking` reads."""
    splits = [tree["splits"] for tree in trees["oblivious_trees"]]
    (hidden, hidden_bias), (out, out_bias) = net.depths
    rounded = {
        "mean": net.mean, "scale": 1 / net.spread, "hidden": hidden.T, "hidden_bias": hidden_bias, "out": out,
        "out_bias": out_bias,
    }  # fmt: skip
    return {
        "names": {word: round(odds * 100) for word, odds in sorted(names.items()) if abs(odds) >= 0.05},
        "first": {
            "measures": [[split["float_feature_index"] for split in tree] for tree in splits],
            "borders": [[float(f"{split['border']:.5g}") for split in tree] for tree in splits],
            # plain numbers
            "leaves": [[round(value * 10_000) for value in tree["leaf_values"]] for tree in trees["oblivious_trees"]],  # type: ignore[operator]
            "bias": [trees["scale_and_bias"][1]],
        },
        "second": {
            name: [float(f"{value:.4g}") for value in values.ravel().tolist()] for name, values in rounded.items()
        },
        "threshold": THRESHOLD,
    }


if __name__ == "__main__":
    main()
