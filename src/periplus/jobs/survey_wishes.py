"""Which survey does a form ask for, and by which commands would one make it and run it?"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from periplus.analyse.unit_list import unit_list
from periplus.api.survey_plan import ITEMS, WITHIN, checked
from periplus.errors import UsageError
from periplus.jobs.presets import MOST_STARTS, SURVEY_PAGES, flags, starts_of
from periplus.model.campaign import Campaign
from periplus.model.job import JobOrder
from periplus.model.survey import Unit
from periplus.present.wording import count_of
from periplus.schedule.bandit.names import RULES

USUAL = Campaign()
NAMED = 12  # sites that a command line names one by one; of more it names a file
RULE_WORDS = {name: sentence for name, (sentence, _) in RULES.items()}
WITH_NUMBER = ("r2", "r3", "quantum")
LARGEST = {"pages": 10_000_000, "seed": 2**31, "max_time": 10_000_000, "rule_number": 1_000_000}


@dataclass(frozen=True, slots=True)
class SurveyWish:
    """A survey that a form describes. run: the job that reads it; lines: the commands that make and run it, as one would type them."""

    campaign: Campaign
    run: JobOrder
    lines: str


def survey_wished(form: Mapping[str, str], folder: str) -> SurveyWish:
    """sites, and perhaps title, rule, rule_number, pages, item, within, seed, max_depth, delay. folder: as commands name it. Raises UsageError."""
    units = units_of_text(form.get("sites", ""))
    campaign = Campaign(
        title=form.get("title", "").strip()[:200] or f"Survey of {count_of(len(units), 'site')}",
        units=units,
        rule=_rule(form) or USUAL.rule,
        within=_one_of(form, "within", WITHIN),
        item=_one_of(form, "item", ITEMS) or USUAL.item,
        pages=_whole(form, "pages", SURVEY_PAGES),
        seed=_whole(form, "seed", USUAL.seed),
    )
    checked(campaign)
    run = run_wished({name: text for name, text in form.items() if name in ("max_depth", "delay")}, folder)
    lines = [("periplus", "survey", "create", "-c", folder, *_said(form, campaign)), ("periplus", *run.command)]
    return SurveyWish(campaign, run, "\n".join(map(shlex.join, lines)))


def run_wished(form: Mapping[str, str], folder: str) -> JobOrder:
    """The job that goes on with a survey: perhaps with pages in all, max_time, rule, max_depth, delay. Raises UsageError."""
    words = []
    if form.get("pages", "").strip():
        words += ["--pages", str(_whole(form, "pages", 0))]
    if form.get("max_time", "").strip():
        words += ["--max-time", str(_whole(form, "max_time", 0))]
    if rule := _rule(form):
        words += ["--rule", rule]
    return JobOrder(("survey", "run", "-c", folder, *words, *flags({name: form.get(name, "") for name in ("max_depth", "delay")})))


def units_of_text(text: str) -> tuple[Unit, ...]:
    """Sites as people paste them: an address a line (or parted by blanks), or CSV with a heading. Raises UsageError."""
    first = text.strip().partition("\n")[0]
    plain = not any(mark in first for mark in ",;\t") and "start" not in first.lower().split()
    units = unit_list("\n".join(text.split()) if plain else text)
    if len(units) > MOST_STARTS:
        raise UsageError(f"{len(units):,} sites at once: at most {MOST_STARTS:,} from a form, or use `periplus survey create -i FILE`")
    starts_of("\n".join(unit.start for unit in units))  # refuses what is no address on the web
    return units


def _said(form: Mapping[str, str], campaign: Campaign) -> list[str]:
    """What differs from the usual, as flags."""
    words = ["--title", campaign.title] if form.get("title", "").strip() else []
    for flag in ("rule", "pages", "item", "within", "seed"):
        if getattr(campaign, flag) != getattr(USUAL, flag):
            words += [f"--{flag}", str(getattr(campaign, flag))]
    plain = all(unit == dataclasses.replace(unit, name=unit.prefixes[0], bundle="", official=True) for unit in campaign.units)
    if plain and len(campaign.units) <= NAMED:
        return [*words, *(unit.start for unit in campaign.units)]
    return [*words, "-i", "sites.csv" if not plain else "sites.txt"]


def _rule(form: Mapping[str, str]) -> str:
    name, number = form.get("rule", "").strip(), form.get("rule_number", "").strip()
    if not number or name not in WITH_NUMBER:
        return name
    return f"{name}:{_whole(form, 'rule_number', 1)}"


def _one_of(form: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    text = form.get(name, "")
    if text and text not in choices:
        raise UsageError(f"{name} is {' or '.join(choices)}, not {text[:50]!r}")
    return text


def _whole(form: Mapping[str, str], name: str, usual: int) -> int:
    text = form.get(name, "").strip()
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= LARGEST[name]):
        raise UsageError(f"{name.replace('_', ' ')} is a whole number up to {LARGEST[name]:,}, not {text[:50]!r}")
    return int(text)
