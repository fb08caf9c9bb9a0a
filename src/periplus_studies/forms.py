"""Commands for the forms of surveys in the browser interface."""

from __future__ import annotations

import dataclasses
from functools import partial

from periplus.errors import UsageError
from periplus.jobs.presets import MOST_PAGES, MOST_STARTS, JobRequest, Preset, choice, flags, starts_of, whole
from periplus.jobs.setting_fields import Form
from periplus.model.job import JobOrder
from periplus.model.web import Url
from periplus.present.wording import count_of
from periplus_studies.api import create
from periplus_studies.model import Campaign, Unit
from periplus_studies.rules import rules
from periplus_studies.schedule import ITEMS, WITHIN, check_campaign
from periplus_studies.units import unit_list, without_repetitions

SURVEY_PAGES = 2_000  # default of a survey: an hour for twenty sites with the default delay

PAGE_NUMBERS = {"pages": SURVEY_PAGES, "least_pages": 0, "read_companions": 0}  # fields of survey forms with defaults


USUAL = Campaign()

MOST_SITES = 12  # sites in a command line; more sites are given as a file

RULE_WORDS = {name: sentence for name, (sentence, _) in rules().items()}

WITH_NUMBER = ("r2", "r3", "quantum")


def survey_request(form: Form, folder: str) -> JobRequest:
    """The request of a survey form.

    form: sites, optionally title, rule, rule_number, item, within, seed, max_depth, delay, and PAGE_NUMBERS. folder: as
    in commands. Raises UsageError.
    """
    units = units_of_text(form.get("sites", ""))
    pages, least_pages, companion_pages = (
        whole(form, name, usual, 0, MOST_PAGES) for name, usual in PAGE_NUMBERS.items()
    )
    campaign = Campaign(
        title=form.get("title", "").strip()[:200] or f"Survey of {count_of(len(units), 'site')}",
        units=units,
        rule=_rule(form) or USUAL.rule,
        within=choice(form, "within", WITHIN),
        item=choice(form, "item", ITEMS, USUAL.item),
        pages=pages,
        seed=whole(form, "seed", USUAL.seed, 0, 2**31),
        least_pages=least_pages,
        read_companions=companion_pages,
    )
    check_campaign(campaign)
    run = survey_run({name: text for name, text in form.items() if name in ("max_depth", "delay")}, folder)
    before = ("survey", "create", "-c", folder, *_campaign_flags(form, campaign))
    return JobRequest(folder, run, 0.0, partial(create, campaign=campaign), before, "survey")


def survey_run(form: Form, folder: str) -> JobOrder:
    """The job that continues a survey. form: optionally max_time, rule, max_depth, delay, and PAGE_NUMBERS.

    Raises UsageError.
    """
    words = []
    for name in (*PAGE_NUMBERS, "max_time"):
        if form.get(name, "").strip():
            words += [_flag(name), str(whole(form, name, 0, 0, MOST_PAGES))]
    if rule := _rule(form):
        words += ["--rule", rule]
    limits = flags({name: form.get(name, "") for name in ("max_depth", "delay")})
    return JobOrder(("survey", "run", "-c", folder, *words, *limits))


def units_of_text(text: str) -> tuple[Unit, ...]:
    """Parses pasted sites: addresses separated by line breaks or blanks, or CSV with a header. Raises UsageError."""
    first = text.strip().partition("\n")[0]
    plain = not any(mark in first for mark in ",;\t") and "start" not in first.lower().split()
    units, _ = without_repetitions(unit_list("\n".join(text.split()) if plain else text))
    if len(units) > MOST_STARTS:
        raise UsageError(
            f"{len(units):,} sites at once: at most {MOST_STARTS:,} from a form, or use "
            "`periplus survey create -i FILE`"
        )
    starts_of("\n".join(unit.start for unit in units))  # raises for other than web addresses
    return units


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _campaign_flags(form: Form, campaign: Campaign) -> list[str]:
    """Flags for values that differ from the defaults."""
    words = ["--title", campaign.title] if form.get("title", "").strip() else []
    for name in ("rule", "item", "within", "seed", *PAGE_NUMBERS):
        if getattr(campaign, name) != getattr(USUAL, name):
            words += [_flag(name), str(getattr(campaign, name))]
    plain = all(
        unit == dataclasses.replace(unit, name=unit.prefixes[0], bundle="", official=True) for unit in campaign.units
    )
    if plain and len(campaign.units) <= MOST_SITES:
        return [*words, *(unit.start for unit in campaign.units)]
    return [*words, "-i", "sites.csv" if not plain else "sites.txt"]


def _rule(form: Form) -> str:
    name = form.get("rule", "").strip()
    if name in WITH_NUMBER and form.get("rule_number", "").strip():
        return f"{name}:{whole(form, 'rule_number', 1, 0, 1_000_000)}"
    return name


def _survey(form: Form, starts: tuple[Url, ...], folder: str, further: tuple[str, ...]) -> JobRequest:
    request = survey_request({"sites": "\n".join(starts), "pages": form.get("max_pages", "")}, folder)
    return dataclasses.replace(request, order=JobOrder((*request.order.command, *further)))


SURVEY = Preset(
    "survey",
    "Survey a set of sites",
    "Crawls many sites where most new external links are found, within a number of pages: one address a line.",
    "survey",
    _survey,
    many=True,
)
