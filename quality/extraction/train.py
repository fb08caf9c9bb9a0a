"""Trains the shipped weights, and scores them on held-out sites.

    CORPORA=... MANUALS=... python quality/extraction/train.py [--held-out] [--folds N] [--report FILE]

Needs catboost, which is not a dependency of the project, for the trees; NumPy does the rest. Prints held-out scores by
set and by kind of page: no source (a site, or all languages of a manual) is scored by weights trained on it. Then
writes `weights.json`, trained on all pages, unless --held-out. --report: the worst 40 pages with their blocks.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))  # this folder, however the file is started

import gold
import manuals
import scoring
from labelling import shares
from net_training import Example, Learnt, forward, learn, scaled
from worst import Judged, write_report

from periplus.analyse.content import features, marking
from periplus.analyse.content.evidence import Pages, SiteEvidence, facts, traces_of
from periplus.document.blocks import blocks_of
from periplus.document.reader import read_page
from periplus.model.page import Blocks, Part

Floats = npt.NDArray[np.float32]
TABLE = Path(__file__).parents[2] / "src/periplus/analyse/content/weights.json"
THRESHOLD = 0.33  # the held-out mean of the five sets is the same from 0.30 to 0.36
TREES = 200
# so that small and hard sets have enough weight
SET_WEIGHT = {"cleanportal": 2.0, "debdocs": 1.5, "wcxb-dev350": 2.0, "cleaneval": 0.4}
NO_ARTICLE_WEIGHT = 2.0  # weight of forums, shops, lists, ...: most pages are articles
PAGES_OF_A_SITE = 25
LEAST_SITES = 6  # least number of sites with a word in their paths for the word to get a weight
ALONE_SHARE = 0.4  # share of pages also trained with little or no knowledge of their site
MANUALS = "manuals"


class LabelledPage(NamedTuple):
    """A page read once, with the share of each block's words that is content."""

    blocks: Blocks
    share: Floats
    words: Floats
    gold: gold.GoldPage


class Row(NamedTuple):
    """A training example: a page under one state of knowledge of its site."""

    source: str
    site: int
    page: int
    state: str  # alone: nothing is known of its site; few: one to three pages; whole: all
    is_main: bool  # the state with most knowledge available for this page
    measures: Floats  # [n, m]
    labelled: LabelledPage
    set_name: str
    counts: bool

    @property
    def weight(self) -> float:
        """Weight of the page in training."""
        kind = self.labelled.gold.kind
        return SET_WEIGHT.get(self.set_name, 1.0) * (NO_ARTICLE_WEIGHT if kind not in ("", "article") else 1.0)


def labelled_sites() -> Iterator[tuple[str, str, list[LabelledPage]]]:
    """(set, source, pages) of each site."""
    for name in (*gold.SETS, MANUALS):
        pages = manuals.read() if name == MANUALS else gold.read(name)
        for site, of_site in gold.by_site(pages).items():
            read = [(page, blocks_of(read_page(page.html))) for page in of_site]
            labelled = [LabelledPage(blocks, *shares(blocks, page.gold), page) for page, blocks in read if blocks]
            # the English manual of one set and the Czech of another are one source; pages without a site are not
            yield name, gold.source(site) if name in ("debdocs", MANUALS) else f"{name} {site}", labelled


def name_votes(pages: Sequence[LabelledPage]) -> dict[str, float]:
    """Log-odds for content of each word in the paths of a site."""
    content: dict[str, float] = defaultdict(float)
    every: dict[str, float] = defaultdict(float)
    for page in pages:
        total = max(float(page.words.sum()), 1.0)
        for block, part, size in zip(page.blocks, page.share.tolist(), page.words.tolist(), strict=True):
            for word in {word for step in facts(block.path).steps for word in step.words} if size else ():
                content[word] += part * size / total
                every[word] += size / total
    doubt = 0.02 * len(pages)
    rates = {word: (content[word] + doubt / 2) / (every[word] + doubt) for word in every}
    return {word: math.log(rate / (1 - rate)) for word, rate in rates.items()}


class NameVotes:
    """The votes of all sites, which can be averaged without those of one source."""

    def __init__(self, votes: Sequence[tuple[str, dict[str, float]]]) -> None:
        """votes: (source, log-odds) of each site."""
        self._sums: dict[str, float] = defaultdict(float)
        self._sites: Counter[str] = Counter()
        self._of_source: dict[str, list[dict[str, float]]] = defaultdict(list)
        for source, vote in votes:
            self._of_source[source].append(vote)
            self._sites.update(vote.keys())
            for word, odds in vote.items():
                self._sums[word] += odds

    def weights(self, without: str = "") -> dict[str, float]:
        """Mean vote of the sites for each word, shrunk towards zero. without: a source to exclude."""
        sums, sites = dict(self._sums), Counter(self._sites)
        for vote in self._of_source.get(without, ()):
            sites.subtract(vote.keys())
            for word, odds in vote.items():
                sums[word] -= odds
        prior = sum(sums.values()) / max(sites.total(), 1)
        return {
            word: (sums[word] - prior * count) / (count + 4) for word, count in sites.items() if count >= LEAST_SITES
        }


def rows() -> tuple[list[Row], dict[str, float]]:
    """Measures of all pages, and the weights of words. The pages of a source are measured without its own votes."""
    sites = list(labelled_sites())
    votes = NameVotes([(source, name_votes(pages)) for _, source, pages in sites])
    rng, measured = random.Random(1), []
    for at, (name, source, pages) in enumerate(sites):
        names = features.PathWeights(votes.weights(without=source))
        whole = _learnt([page.blocks for page in pages])
        counts = name in gold.SINGLE or len(pages) >= gold.LEAST_PAGES
        for number, page in enumerate(pages):
            around = Pages([page.blocks], [traces_of(page.blocks)])
            seen = {"alone": SiteEvidence().evidence_of(page.blocks, counted=False)}
            if len(pages) > 1:
                others = [other.blocks for other in pages if other is not page]
                few = rng.sample(others, min(rng.choice((1, 2, 3)), len(others)))
                seen["few"] = _learnt(few).evidence_of(page.blocks, counted=False)
            if len(pages) >= gold.LEAST_PAGES:
                seen["whole"] = whole.evidence_of(page.blocks, counted=True)
            main = [*seen][-1]
            for state, known in seen.items():
                measures = np.array(features.measures_of(around, known, names)).T.copy()
                measured.append(Row(source, at, number, state, state == main, measures, page, name, counts))
    return measured, votes.weights()


def _learnt(pages: Sequence[Blocks]) -> SiteEvidence:
    evidence = SiteEvidence()
    for blocks in pages:
        evidence.learn(blocks)
    return evidence


def chosen(all_rows: Sequence[Row], rng: np.random.Generator) -> list[Row]:
    """A limited number of pages per site, most of them with the whole site known."""
    by_site: dict[int, list[Row]] = defaultdict(list)
    for row in all_rows:
        if row.is_main or rng.random() < ALONE_SHARE:
            by_site[row.site].append(row)
    return [site[at] for site in by_site.values() for at in rng.permutation(len(site))[: PAGES_OF_A_SITE * 3 // 2]]


def grown(all_rows: Sequence[Row], seed: int = 0) -> object:
    """Trees that predict the share of content words of a block."""
    rng = np.random.default_rng(seed)
    parts: list[tuple[Floats, Floats, Floats]] = []
    for row in chosen(all_rows, rng):
        words = row.labelled.words
        weight = np.minimum(words / (len(row.labelled.gold.gold.split()) + 20), 0.5) * row.weight
        # small blocks are many and have little weight: a sample represents them
        chance = np.minimum(weight / 0.03 + 0.02, 1)
        taken = (words > 0) & (rng.random(len(weight)) < chance)
        parts.append((row.measures[taken], row.labelled.share[taken], (weight / chance)[taken]))
    measures, share, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    catboost = import_module("catboost")
    model = catboost.CatBoostClassifier(
        iterations=TREES, depth=6, learning_rate=0.15, loss_function="CrossEntropy", border_count=32, l2_leaf_reg=5,
        random_seed=seed,
        bootstrap_type="Bernoulli", subsample=0.7, rsm=0.25, verbose=0, allow_writing_files=False,
    )  # fmt: skip
    return model.fit(catboost.Pool(measures, share, weight=weight / weight.mean()))


def tree_scores(model: object, some: Sequence[Row]) -> list[Floats]:
    """Predictions of the trees for each page."""
    # catboost's
    odds = model.predict(np.concatenate([row.measures for row in some]), prediction_type="RawFormulaVal")  # type: ignore[attr-defined]
    ends = np.cumsum([len(row.labelled.words) for row in some])[:-1]
    return [(1 / (1 + np.exp(-part))).astype(np.float32) for part in np.split(odds, ends)]


def example(row: Row, score: Floats) -> Example:
    """The input of the net for a page."""
    page = row.labelled
    second = np.array(marking.measures_of(Pages([page.blocks], [traces_of(page.blocks)]), score)).T
    measures = np.concatenate((row.measures, second), axis=1)
    return Example(measures, page.share, page.words, len(page.gold.gold.split()), row.weight)


def net_of(pairs: Sequence[tuple[Row, Example]]) -> Learnt:
    """The net trained on these pages. Scores of the trees must be held out, or the net trusts them too much."""
    of_row = {id(row): shown for row, shown in pairs}
    return learn(lambda rng: [of_row[id(row)] for row in chosen([row for row, _ in pairs], rng)])


def main() -> None:
    """Trains, scores and writes the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="print the scores; write nothing")
    parser.add_argument("--folds", type=int, default=3, help="number of folds for the sources of each set")
    parser.add_argument("--report", type=Path, help="write the worst pages with their blocks to this file")
    args = parser.parse_args()
    all_rows, names = rows()
    fold = _folds(all_rows, args.folds)
    pairs: list[tuple[Row, Example]] = []
    first: dict[int, Floats] = {}
    for number in range(args.folds):
        model = grown([row for row in all_rows if fold[row.source] != number])
        for row, score in zip(
            some := [row for row in all_rows if fold[row.source] == number], tree_scores(model, some), strict=True
        ):
            pairs.append((row, example(row, score)))
            first[id(row)] = score
    judged = list(held_out(pairs, first, fold))
    print_scores(judged)
    if args.report:
        write_report([page for page in judged if page.is_main and page.counts], args.report)
    if not args.held_out:
        write(grown(all_rows), net_of(pairs), names)


def _folds(all_rows: Sequence[Row], count: int) -> dict[str, int]:
    """The fold of each source; the sources of each set are distributed evenly."""
    fold: dict[str, int] = {}
    for name in (*gold.SETS, MANUALS):
        sources = sorted({row.source for row in all_rows if row.set_name == name} - fold.keys())
        fold |= {source: at % count for at, source in enumerate(random.Random(5).sample(sources, len(sources)))}
    return fold


def held_out(pairs: Sequence[tuple[Row, Example]], first: dict[int, Floats], fold: dict[str, int]) -> Iterator[Judged]:
    """Scores of pages by trees and a net that were not trained on their source.

    first: held-out predictions of the trees, by the id of the row.
    """
    for number in sorted({*fold.values()}):
        net = net_of([(row, shown) for row, shown in pairs if fold[row.source] != number])
        for row, shown in pairs:
            if fold[row.source] == number:
                second = forward(net.depths, scaled(shown.measures, net.mean, net.spread))[1]
                page = row.labelled
                yield Judged(
                    row.set_name, page.gold, page.blocks, page.share, page.words,
                    marking.both(first[id(row)], second.astype(np.float32)), row.state, row.is_main, row.counts,
                )  # fmt: skip


def print_scores(judged: Sequence[Judged]) -> None:
    """Prints word F1, and the number of pages that keep less than half of their content, by set and by kind of page."""
    groups: dict[str, list[tuple[str, bool, float, float]]] = defaultdict(list)
    for page in judged:
        if page.counts:
            parts = [Part.CONTENT if score > THRESHOLD else Part.NAVIGATION for score in page.scores.tolist()]
            kept, words = scoring.kept(page.blocks, parts), scoring.words(page.gold.gold)
            value = (page.state, page.is_main, scoring.word_f1(kept, words), page.recall(THRESHOLD))
            groups[page.set_name].append(value)
            if page.gold.kind:
                groups[f"  {page.gold.kind}"].append(value)
    print(f"{'':16s}{'pages':>7s}{'F1':>8s}{'alone':>8s}{'few':>8s}{'lost':>8s}")
    means: dict[str, float] = {}
    for name, values in sorted(groups.items(), key=lambda group: group[0].startswith(" ")):
        main = [value for value in values if value[1]]
        means[name] = sum(value[2] for value in main) / len(main)
        line = f"{name:16s}{len(main):7d}{means[name]:8.3f}"
        for state in ("alone", "few"):
            some = [value[2] for value in values if value[0] == state]
            line += f"{sum(some) / len(some):8.3f}" if some else " " * 8
        print(line + f"{sum(value[3] < 0.5 for value in main) / len(main):8.1%}")
    if all(name in means for name in gold.FIVE):
        print(f"mean of five    {'':7s}{sum(means[name] for name in gold.FIVE) / len(gold.FIVE):8.3f}")
    print("few: of the pages with others of their site; lost: pages that keep less than half of their content")


def write(model: object, net: Learnt, names: dict[str, float]) -> None:
    """Writes all weights as one table."""
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
    """The table that `periplus.analyse.content.marking` reads."""
    splits = [tree["splits"] for tree in trees["oblivious_trees"]]
    (hidden, hidden_bias), (out, out_bias) = net.depths
    rounded = {
        "mean": net.mean, "scale": 1 / net.spread, "hidden": hidden.T, "hidden_bias": hidden_bias, "out": out,
        "out_bias": out_bias,
    }  # fmt: skip
    return {
        # thousandths of all words: a path has few words, so more rounding could move a sum across a threshold
        "names": {word: round(odds * 1_000) for word, odds in sorted(names.items())},
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
