"""Yield of a campaign over real documentation sites with each selection rule, compared with the optimum; and the cost of
a kill.

Manuals of Debian packages are served on loopback by nginx, each as its own host. Every rule gets the same number of
pages. The optimum is the best choice of breadth-first prefixes with full knowledge, computed from the files
(survey_optimum).

    python benchmarks/survey.py --root / --pages 1000 --svg survey.svg     the packages as they are installed; or where they are unpacked
"""  # noqa: E501

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from measure import table
from serving import Server, Site, serve

sys.path.append(str(Path(__file__).parent.parent / "quality" / "bandits"))
from manuals import SITES
from survey_optimum import best as optimum

from periplus.api.homes import home_of
from periplus.settings import settings_from
from periplus_studies import api as survey
from periplus_studies.schedule import survey_policy

RULES = ("r1", "r2:20", "r3", "quantum", "scout", "scout learned")
DELAY_S = 0.02  # between two requests to one host; all are our own
CLOCK_S = 0.002  # resolution of the server log: a millisecond at start and end
SELF_LINKING = frozenset({"cppreference"})  # a link to its own address on the web on each page: no external links
KILLED = "scout"  # this rule is killed twice and resumed


@dataclass(slots=True)
class Outcome:
    """Result of a campaign."""

    rule: str
    links: int
    curve: list[int] = field(default_factory=list)  # links after each page
    requests: int = 0
    took_s: float = 0.0
    least_gap_s: float = 0.0
    at_once: int = 0
    robin: str = ""
    kills: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the packages are unpacked")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rules", nargs="*", default=RULES)
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        metavar="SITE",
        help="sites to leave out: on two of them a page or two hold most links of all",
    )
    parser.add_argument("--svg", type=Path, help="write the curves")
    options = parser.parse_args()
    names = [
        name
        for name, (folder, start) in SITES.items()
        if name not in {*SELF_LINKING, *options.without} and (options.root / folder / start.lstrip("/")).is_file()
    ]
    sites = [Site(f"{name}.test", options.root / SITES[name][0], SITES[name][1]) for name in names]
    best = optimum(sites, options.pages)
    print(f"{len(sites)} sites: {', '.join(names)}; {options.pages} pages; offline optimum {best:,} links", flush=True)
    with tempfile.TemporaryDirectory(prefix="periplus-survey-") as temp, serving(sites, Path(temp)) as server:
        found = [campaign(server, Path(temp), rule, options.pages, kills=0) for rule in options.rules]
        found.append(campaign(server, Path(temp), KILLED, options.pages, kills=2))
    report(found, best, options.pages)
    if options.svg:
        options.svg.write_text(drawing(found, best, options.pages), "utf-8")


@contextlib.contextmanager
def serving(sites: list[Site], temp: Path) -> Iterator[Server]:
    folder = temp / "nginx"
    folder.mkdir()
    with serve(sites, folder, core=None) as server:
        yield server


def campaign(server: Server, temp: Path, rule: str, pages: int, *, kills: int) -> Outcome:
    """Runs a campaign by the real command. kills: number of kills during the run, at equal intervals."""
    folder = temp / f"{rule.replace(' ', '-').replace(':', '-')}-{kills}"
    name, _, within = rule.partition(" ")
    starts = [host.by_name for host in server.hosts]
    command = [sys.executable, "-m", "periplus", "survey"]
    words = [*starts, "-c", str(folder), "--pages", str(pages), "--rule", name, "--within", within or "breadth"]
    subprocess.run([*command, "create", *words], check=True, stderr=subprocess.DEVNULL)
    going = [*command, "run", "-q", "-c", str(folder), "--delay", str(DELAY_S), "--max-depth", "-1", "--allow-private"]
    for host in server.hosts:
        going += ["--mine", host.site.name, "--resolve", host.resolve]
    mark, began = server.mark(), time.monotonic()
    for number in range(kills):
        killed_at(server, going, mark, pages * (number + 1) // (kills + 1))
    subprocess.run(going, check=True, stderr=subprocess.DEVNULL)
    made = Outcome(rule, 0, took_s=time.monotonic() - began, kills=kills)
    politeness(made, server, mark)
    yielded(made, folder)
    print(
        f"  {rule}{' killed' if kills else ''}: {made.links:,} links, {made.took_s:.0f} s", file=sys.stderr, flush=True
    )
    return made


def killed_at(server: Server, command: list[str], mark: int, requests: int) -> None:
    """Runs the command and kills it after a number of requests to the server."""
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while len(server.hits(mark)) < requests and child.poll() is None:
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    child.wait()


def politeness(made: Outcome, server: Server, mark: int) -> None:
    """From the server log: shortest time between two requests to a host, most simultaneous requests to a host."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with server.log.open("rb") as file:
        file.seek(mark)
        for line in file.read().decode("utf-8", "replace").splitlines():
            ended, took, host, request = line.split("\t")[:4]
            made.requests += "/robots.txt" not in request
            spans[host].append((float(ended) - float(took), float(ended)))
    gaps = [after[0] - before[0] for times in spans.values() for before, after in itertools.pairwise(sorted(times))]
    made.least_gap_s = min(gaps)
    made.at_once = max(most_at_once(times) for times in spans.values())


def most_at_once(spans: list[tuple[float, float]]) -> int:
    moves = sorted(
        [(start, 1) for start, _ in spans] + [(max(start, end - CLOCK_S) + 1e-9, -1) for start, end in spans]
    )
    return max(itertools.accumulate(step for _, step in moves))


def yielded(made: Outcome, folder: Path) -> None:
    """Number of new links of a site after each page, as counted by the optimum."""
    policy = survey_policy(survey.campaign_of(folder), settings_from({"max_depth": -1}))
    with home_of(folder).reader() as reader:
        policy.learn(reader.visits(0))
    record, seen, counts = policy.record, set(), [0] * len(policy.record.site)
    for page, item in zip(record.page, record.item, strict=True):
        if (record.site[page], item) not in seen:
            seen.add((record.site[page], item))
            counts[page] += 1
    made.curve = list(itertools.accumulate(counts))
    made.links = made.curve[-1]
    baseline = survey.standing_of(folder).harvest.baseline
    made.robin = f"{baseline.found:,} on {baseline.pages:,}"


def report(found: list[Outcome], best: int, pages: int) -> None:
    heads = (
        "rule",
        "pages",
        "links",
        "of optimum",
        "round robin, links on pages",
        "requests",
        "least gap ms",
        "at once",
        "s",
    )
    rows = []
    for one in found:
        name = one.rule + (f", killed {one.kills} times" if one.kills else "")
        gap = f"{one.least_gap_s * 1000:.0f}"
        rows.append(
            (
                name,
                len(one.curve),
                one.links,
                f"{one.links / best:.3f}",
                one.robin,
                one.requests,
                gap,
                one.at_once,
                f"{one.took_s:.0f}",
            )
        )
    print(table(heads, rows))
    wrong = [one for one in found if len(one.curve) != pages or one.least_gap_s < DELAY_S - CLOCK_S or one.at_once > 1]
    print(json.dumps({"optimum": best, "impolite or over budget": [one.rule for one in wrong]}))


def drawing(found: list[Outcome], best: int, pages: int) -> str:
    """Chart of links over pages, one line per rule, with the optimum of the whole budget at the right."""
    width, height, left, right, top, bottom = 900, 460, 60, 210, 30, 40
    colours = ("#155e75", "#b98e2f", "#b4513f", "#4d7c3a", "#7a5aa6", "#2f7f86", "#a2567f", "#5b7fae", "#777777")
    most = max(best, *(one.links for one in found))

    def at(page: int, links: int) -> str:
        return (
            f"{left + (width - left - right) * page / pages:.1f},"
            f"{height - bottom - (height - top - bottom) * links / most:.1f}"
        )

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12">'
        )
    ]
    parts.append(
        f'<rect width="{width}" height="{height}" fill="#fff"/><text x="{left}" y="18">New external '
        f"links over {pages} pages</text>"
    )
    axes = f"M{left} {top}V{height - bottom}H{width - right}"
    parts.append(f'<path d="{axes}" fill="none" stroke="#888"/>')
    for share in (0.25, 0.5, 0.75, 1.0):
        _, y = at(0, int(most * share)).split(",")
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4:.0f}" text-anchor="end">{int(most * share)}</text>')
        parts.append(
            f'<text x="{at(int(pages * share), 0).split(",")[0]}" y="{height - bottom + 18}" '
            f'text-anchor="middle">{int(pages * share)}</text>'
        )
    x, y = at(pages, best).split(",")
    parts.append(
        f'<path d="M{left} {y}H{x}" stroke="#000" stroke-dasharray="4 4"/><text x="{float(x) + 8}" '
        f'y="{float(y) + 4}">offline optimum {best}</text>'
    )
    place = 0.0
    for one, colour in sorted(
        zip([one for one in found if not one.kills], colours, strict=False), key=lambda pair: -pair[0].links
    ):
        points = " ".join(
            at(page, one.curve[page - 1] if page else 0) for page in range(0, len(one.curve) + 1, max(1, pages // 200))
        )
        place = max(place + 15, float(at(pages, one.links).split(",")[1]) + 4)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{float(x) + 8}" y="{place:.0f}" fill="{colour}">{one.rule} {one.links}</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
