"""How soon does a topical crawl find relevant pages, for each order of pages?

On a real text graph (CORPORA): six topics not used for tuning, three seeds, two runs each; harvest rate, and recall of
the reachable pages. On generated webs of 3,000 hosts with politeness: harvest rate of 8,000 fetches and of the last
2,000. Compared with an oracle that always takes a relevant discovered page first. On the two webs with lists
(`listweb.py`), with each of three kinds of pages as the topic: recall of the reachable pages by order, and the lead of
the worst topic over breadth first.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from crawls import FETCHES, LATELY, Marks, crawl_graph, crawl_lists, crawl_web
from figures import Figure, digest_of, write
from listweb import KINDS, MAKERS
from madeweb import Web
from orders import ALL_NAMES
from textgraph import NAME, REPORTED, graph_of, task_of

from periplus_topics.schedule.queue import WEIGHED

WEB_SEEDS = (
    1,
    2,
)  # weights were fitted on webs 101 and 102, the treatment of lists on webs with lists 101 and 102
LIST_ORDERS = (WEIGHED, "breadth", "best-first", "shark")
AIMS = {"area": 0.75, "harvest_100": 0.40, "recall_10": 0.87}
AIM_LATELY = 0.88


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ({np.std(values, ddof=1) / np.sqrt(len(values)):.3f})"


def of_graph(path: Path, runs: int) -> list[Figure]:
    graph = graph_of(path)
    tasks = [task_of(graph, topic, run) for topic in REPORTED for run in range(1, runs + 1)]
    print(
        f"text graph: {len(graph.urls):,} pages, {len(tasks)} crawls of {', '.join(REPORTED)}; means (standard errors)"
    )
    print(f"{'order':12}" + "".join(f"{name:>18}" for name in Marks._fields))
    found: dict[str, dict[str, float]] = {}
    for name in (*ALL_NAMES, "oracle"):
        rows = [crawl_graph(graph, task, name) for task in tasks]
        columns = {field: [getattr(row, field) for row in rows] for field in Marks._fields}
        found[name] = {field: float(np.mean(values)) for field, values in columns.items()}
        print(f"{name:12}" + "".join(f"{spread(values):>18}" for values in columns.values()), flush=True)
    data = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()[:16]
    ours = [Figure(f"text graph, {field}", score, AIMS.get(field), data) for field, score in found[WEIGHED].items()]
    return [
        *ours,
        *(
            Figure(f"text graph, {field}", found[order][field], by=order)
            for order in ("best-first", "waits")
            for field in Marks._fields
        ),
    ]


def of_webs(fetches: int) -> list[Figure]:
    webs = [Web(seed) for seed in WEB_SEEDS]
    print(
        f"\nmade webs: {len(webs)} of {len(webs[0].hosts):,} hosts, "
        f"{sum(host.size for host in webs[0].hosts):,} pages in the first"
    )
    print(f"{'order':12}{'of all fetches':>18}{'of the last':>18}")
    figures = []
    late = LATELY * fetches // FETCHES
    data = digest_of(map(str, webs)) if fetches == FETCHES else ""
    for name in ALL_NAMES:
        crawls = [crawl_web(web, name, fetches) for web in webs]
        whole, last = (
            [float(part.mean()) for part in parts] for parts in (crawls, [crawl[-late:] for crawl in crawls])
        )
        print(f"{name:12}{spread(whole):>18}{spread(last):>18}", flush=True)
        if name in (WEIGHED, "best-first", "waits"):
            aim = AIM_LATELY if name == WEIGHED else None
            figures.append(
                Figure(f"made webs, last {late:,}, {name}", float(np.mean(last)), aim, data if name == WEIGHED else "")
            )
    return figures


def of_lists() -> list[Figure]:
    figures = []
    for maker, web_of in MAKERS.items():
        webs = {seed: web_of(seed) for seed in WEB_SEEDS}
        print(f"\nwebs with lists, {maker}: {', '.join(f'{len(web.urls):,}' for web in webs.values())} pages")
        print(f"{'order':12}{'topic':10}{'recall, 5 %':>14}{'10 %':>8}{'area':>8}")
        rows: dict[tuple[str, str], tuple[float, float, float]] = {}
        for name in LIST_ORDERS:
            for topic in KINDS:
                crawls = [crawl_lists(web, topic, seed, name) for seed, web in webs.items()]
                row = np.mean([(one.recall_5, one.recall_10, one.area) for one in crawls], axis=0)
                rows[name, topic] = (float(row[0]), float(row[1]), float(row[2]))
                print(f"{name:12}{topic:10}{row[0]:14.3f}{row[1]:8.3f}{row[2]:8.3f}", flush=True)
        data = digest_of(url for web in webs.values() for url in web.urls)
        gains = [rows[WEIGHED, topic][at] - rows["breadth", topic][at] for topic in KINDS for at in (0, 1)]
        figures.append(Figure(f"lists, {maker}, least gain over breadth first at 5 and 10 %", min(gains), 0.0, data))
        for name in LIST_ORDERS:
            recall = float(np.mean([rows[name, topic][1] for topic in KINDS]))
            by, own = ("", data) if name == WEIGHED else (name, "")
            figures.append(Figure(f"lists, {maker}, recall_10", recall, None, own, by=by))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--runs", type=int, default=2, help="crawls of each topic of the text graph")
    parser.add_argument("--fetches", type=int, default=FETCHES, help="in each made web")
    options = parser.parse_args()
    path = Path(os.environ.get("CORPORA", "")) / NAME
    figures = of_graph(path, options.runs) if os.environ.get("CORPORA") and path.is_file() else []
    figures += of_lists()
    figures += of_webs(options.fetches)
    if options.json:
        write(options.json, figures)


if __name__ == "__main__":
    main()
