"""How well do we, and others, separate content from navigation on the same pages?

    python quality/extraction/measure.py [--no-peers] [--only SET...] [--json FILE]

Word F1 per page, mean over pages; in sets with many pages per site, only sites with at least four pages. All pages of
a site are learned from, then marked. Without CORPORA only the project's own generated sites are scored. The shipped
weights were trained on CORPORA and MANUALS, so these scores are not held out: `train.py --held-out` prints held-out
scores by set and by kind of page.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))  # this folder, however the file is started
sys.path.insert(1, str(Path(__file__).parents[1]))

import gold
import manuals
import scoring
from figures import Figure, digest_of, write
from made_sites import made
from peers import peer_texts

from periplus.analyse.content.evidence import SiteEvidence
from periplus.analyse.content.marking import parts_of
from periplus.document.blocks import blocks_of
from periplus.document.reader import read_page
from periplus.model.page import Blocks, Part

LOST = 0.5  # least share of the content of a page that must be kept


class SetScore(NamedTuple):
    """The figures of a set."""

    pages: list[float]  # word F1 of each scored page
    sites: list[scoring.SiteScore]
    digest: str
    cpu_s: float
    lost: float  # share of the pages that keep less than half of their content


def marked(pages: Sequence[gold.GoldPage]) -> list[tuple[Blocks, tuple[Part, ...]]]:
    """Blocks and parts of a site's pages, after learning from all of them."""
    evidence = SiteEvidence()
    blocks = [blocks_of(read_page(page.html)) for page in pages]
    for page_blocks in blocks:
        evidence.learn(page_blocks)
    return [(page_blocks, parts_of(page_blocks, evidence)) for page_blocks in blocks]


def set_score(name: str, pages: list[gold.GoldPage]) -> SetScore:
    """Our score of a set."""
    scores, sites, recalls, cpu_s = [], [], [], 0.0
    for site in gold.by_site(pages).values():
        if not gold.counts(name, site):
            continue
        begun = time.process_time()
        found = marked(site)
        cpu_s += time.process_time() - begun
        golds = [scoring.words(page.gold) for page in site]
        scores += [scoring.word_f1(scoring.kept(*page), words) for page, words in zip(found, golds, strict=True)]
        recalls += [
            (scoring.kept(*page) & words).total() / max(words.total(), 1)
            for page, words in zip(found, golds, strict=True)
        ]
        score = (
            scoring.site_score([(*page, words) for page, words in zip(found, golds, strict=True)])
            if len(site) >= gold.LEAST_PAGES
            else None
        )
        sites += [score] if score else []
    lost = statistics.fmean(recall < LOST for recall in recalls)
    return SetScore(scores, sites, gold.digest(pages), cpu_s, lost)


def peer_scores(name: str, pages: list[gold.GoldPage]) -> dict[str, list[float]]:
    """Word F1 of the same pages by each peer that is installed."""
    counted = [page for site in gold.by_site(pages).values() if gold.counts(name, site) for page in site]
    found = peer_texts([page.html for page in counted])
    return {
        peer: [
            scoring.word_f1(scoring.words(text), scoring.words(page.gold))
            for text, page in zip(texts, counted, strict=True)
        ]
        for peer, texts in found.items()
    }


def means(scores: dict[str, list[float]]) -> dict[str, float]:
    """Means by set, and the two overall means."""
    found = {name: statistics.fmean(values) for name, values in scores.items() if values}
    pooled = [value for name in gold.POOLED for value in scores.get(name, [])]
    if pooled:
        found["pooled"] = statistics.fmean(pooled)
    if all(name in found for name in gold.FIVE):
        found["five"] = statistics.fmean(found[name] for name in gold.FIVE)
    return found


def sets() -> dict[str, list[gold.GoldPage]]:
    """All available labelled pages."""
    found = {"made": made()}
    found |= {name: pages for name in gold.SETS if (pages := gold.read(name))}
    return found | ({"manuals": pages} if (pages := manuals.read()) else {})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-peers", action="store_true", help="leave the installed peers out")
    parser.add_argument("--only", nargs="+", metavar="SET", help="of the sets these")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    ours: dict[str, SetScore] = {}
    theirs: dict[str, dict[str, list[float]]] = {}
    for name, pages in sets().items():
        if args.only and name not in args.only:
            continue
        ours[name] = set_score(name, pages)
        for peer, values in ({} if args.no_peers else peer_scores(name, pages)).items():
            theirs.setdefault(peer, {})[name] = values
        print_set(name, ours[name])
    rows = {"periplus": means({name: score.pages for name, score in ours.items()})} | {
        peer: means(values) for peer, values in theirs.items()
    }
    names = list(rows["periplus"])
    print("\nword F1".ljust(19) + "".join(name[:12].rjust(13) for name in names))
    for who, row in rows.items():
        print(who.ljust(18) + "".join(f"{row[name]:13.3f}" if name in row else " " * 13 for name in names))
    if args.json:
        write(args.json, figures(ours, rows))


def figures(ours: dict[str, SetScore], rows: dict[str, dict[str, float]]) -> list[Figure]:
    """Figures for the runner."""
    digests = {name: score.digest for name, score in ours.items()}
    digests |= {
        "pooled": digest_of(digests.get(name, "") for name in gold.POOLED),
        "five": digest_of(digests.get(name, "") for name in gold.FIVE),
    }
    found = [Figure(_titled(name), value, None, digests[name]) for name, value in rows["periplus"].items()]
    for name, score in ours.items():
        if score.sites and name not in gold.SINGLE:
            found.append(
                Figure(
                    f"{name}, template removed",
                    statistics.fmean(site.removed for site in score.sites),
                    None,
                    score.digest,
                )
            )
            found.append(
                Figure(
                    f"{name}, content recall", statistics.fmean(site.recall for site in score.sites), None, score.digest
                )
            )
            found.append(
                Figure(f"{name}, mark", statistics.fmean(site.mark for site in score.sites), None, score.digest)
            )
    found += [
        Figure(_titled(name), value, by=peer)
        for peer, row in rows.items()
        if peer != "periplus"
        for name, value in row.items()
    ]
    return [figure._replace(score=round(figure.score, 4)) for figure in found]


def _titled(name: str) -> str:
    """Title of a figure; it says if the weights were trained on the pages. Aims are for held-out pages
    (`train.py --held-out`).
    """
    return f"{name}, word F1" if name == "made" else f"{name}, word F1 (seen in learning)"


def print_set(name: str, score: SetScore) -> None:
    """Prints how well the templates of a set's sites were removed, and the speed."""
    line = (
        f"{name}: {len(score.pages)} pages at {len(score.pages) / max(score.cpu_s, 1e-9):.0f}/s, {score.lost:.1%} lost"
    )
    if score.sites:
        removed, recall = (
            statistics.fmean(values)
            for values in ([site.removed for site in score.sites], [site.recall for site in score.sites])
        )
        marks = [site.mark for site in score.sites]
        line += (
            f", {len(marks)} sites: template removed {removed:.3f}, content recall {recall:.3f}, mark "
            f"{statistics.fmean(marks):.2f} ({marks.count(5)} of 5)"
        )
    print(line, flush=True)


if __name__ == "__main__":
    main()
