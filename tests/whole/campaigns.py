"""A small web for campaigns: sites with different yields and a known optimal order."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

from voyage import QUICK, Collection

from periplus.api.crawling import CrawlEnd
from periplus.settings import settings_from
from periplus_studies import api as survey
from periplus_studies.model import Campaign
from periplus_studies.units import unit_of
from testweb import Page, Server, Site, Web

RICH, POOR, DRY = "rich.test", "poor.test", "dry.test"
YIELDS = {RICH: 3, POOR: 1, DRY: 0}  # new external links on each page
PAGES = 40  # of each site


def text(host: str, number: int) -> str:
    """Unique words: pages with equal text would be treated as a trap."""
    rng = random.Random(f"{host}{number}")
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=7)) for _ in range(60))


def links(*targets: str) -> str:
    return "<!DOCTYPE html><title>T</title>" + "".join(
        f'<p><a href="{target}">to {target[-4:]}</a></p>' for target in targets
    )


def site(host: str, new: int, pages: int = PAGES) -> Site:
    """A start that links to `pages` - 1 others, in two levels; each page has `new` unique external targets,
    and one shared target.
    """
    made = Site(host)
    first = [f"/p{number}" for number in range(1, pages, 2)]
    for number in range(pages):
        path = f"/p{number}" if number else "/"
        inner = first if number == 0 else [f"/p{number + 1}"] if number % 2 and number + 1 < pages else []
        outer = [f"http://t{number}-{place}.{host}.example/" for place in range(new)] + ["http://all.example/"]
        bad = '<p><a href="javascript:x()">bad</a></p>' if number == 1 else ""
        made.add(Page(path, f"{host} {number}", html=links(*inner, *outer) + bad + f"<p>{text(host, number)}</p>"))
    return made


def web(**more: int) -> Web:
    return Web(
        [site(host, new) for host, new in (YIELDS | {f"{name}.test": new for name, new in more.items()}).items()]
    )


def campaign(server: Server, *hosts: str, **fields: object) -> Campaign:
    units = tuple(unit_of(server.url(host), host.partition(".")[0]) for host in hosts or (POOR, RICH, DRY))
    return dataclasses.replace(Campaign("Small", units, rule="r2:2", within="breadth", pages=30), **fields)


def quick(server: Server, **values: object):
    """Settings as of `survey run`, for loopback."""
    given = {**QUICK, "resolve": tuple(server.resolve), "delay_s": 0.0, **values}
    return settings_from(given, survey.DEFAULTS)


def ran(
    folder: Path, server: Server, made: Campaign | None = None, *, stop=lambda watched: False, **values: object
) -> tuple[Collection, CrawlEnd]:
    """Creates the campaign if missing, and runs it to its end."""
    if made is not None:
        survey.create(folder, made)
    end = survey.run(folder, quick(server, **values), stop)
    return Collection(folder), end


def asked(server: Server) -> list[tuple[str, str]]:
    """(host, path) of each requested page, without robots.txt."""
    return [(entry.host, entry.target) for entry in server.log.entries if entry.target != "/robots.txt"]
