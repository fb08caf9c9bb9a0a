"""`periplus check`: finds broken links and other faults of a site, for people and for continuous integration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from periplus.acquire.folders import INDEX_FILES, is_path, starts_of
from periplus.cli.crawl import (
    EXIT,
    EXIT_INTERRUPT,
    StopOnSignal,
    advice,
    configure_logs,
    lines_of,
    notice,
    with_folders,
)
from periplus.cli.options import (
    LongCommand,
    collection_place,
    format_option,
    open_output,
    option,
    output_option,
    place_flag,
    segment_option,
    setting_options,
    settings_of,
    verbose_option,
)
from periplus.cli.progress import crawl_display, say
from periplus.errors import NoCollection, UsageError
from periplus.features import service
from periplus.model.web import Url
from periplus.present.tables import FORMATS
from periplus.present.wording import count_of
from periplus.settings import SUFFIX
from periplus.urls.folders import folders_of, path_formatter
from periplus.urls.scope import site_name
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.analyse.grades import Condition
    from periplus.analyse.issues import IssueTable
    from periplus.api.checking import CheckEnd, CheckOrder
    from periplus.model.audit import Fault, FieldGrade, GradedField, Issue
    from periplus.settings import Settings

EXIT_GATE = 5
_FORMATS = (*FORMATS, "junit", "github", "gcc", "sarif")


@click.command(cls=LongCommand)
@click.argument("starts", nargs=-1, metavar="[URL|FOLDER]...")
@option(
    "-i --input lists",
    "File of pages to check, one a line: only these are read.",
    click.File("r", encoding="utf-8"),
    many=True,
)
@place_flag(
    "-c --collection", f"The collection: a folder, or an address. By default SITE{SUFFIX}, or the only one here."
)
@option("--external/--no-external", "Also check links to other sites.", bool, True)
@option("--fragments/--no-fragments", "Check that the #fragments of links exist.", bool, True)
@option(
    "--head/--no-head",
    "Send HEAD first where the body is not needed. GET also finds soft 404s and truncated answers.",
    bool,
    True,
)
@option("--offline", "Send no request: list the faults of the stored answers.", bool)
@option(
    "--suggest",
    "Show beside each broken link the archived copy nearest in time to when the link was first seen. URL: of "
    "a CDX server.",
    str,
    "",
    metavar="URL",
)
@option("--site", "Only this site, if the collection has several.", str, "")
@segment_option
@option("--near/--no-near", "Find pages with nearly the same text. Default: on sites of up to 20,000 pages.", bool)
@option(
    "--fail-on",
    "End with exit code 5 if more causes are found: broken>0,error>5,links. NAME: a code, a severity or a category.",
    str,
    "",
    metavar="NAME>N,...",
)
@option(
    "--fail-below",
    "End with exit code 5 when a grade is lower: security=B,accessibility=75. `periplus trends` shows the grades.",
    str,
    "",
    metavar="FIELD=GRADE,...",
)
@option(
    "--baseline",
    "List and count only faults that an earlier check did not find. RUN: its number, or `last`.",
    str,
    "",
    metavar="RUN",
)
@format_option(_FORMATS)
@output_option
@option("-q --quiet", "No progress and no summary; only the list.", bool)
@option("--no-progress", "No progress.", bool)
@verbose_option
@setting_options
def check(starts: tuple[str, ...], lists: tuple[Any, ...], collection: Place | None, **flags: Any) -> None:
    """Find broken links and other faults of a site.

    Crawls the site unless that is done, then requests every link target politely. A link is reported as broken only if
    it failed twice. Faults are counted by cause: a script that is missing on 500 pages is one. Lists the sums by kind,
    then each cause with its first pages; csv and jsonl have every issue. Ctrl-C and kill lose nothing: the same command
    continues. Without a URL it uses the settings of the last crawl or refresh, and checks only the pages fetched so
    far. With a URL a crawl that stopped at a limit (--max-pages, --max-time) continues first.

    \b
    periplus check https://example.org --fail-on broken -f junit -o check.xml     for continuous integration
    periplus check ./public      a folder or single pages before they are published, HTML or Markdown
    periplus check ./public -f gcc     FILE:LINE:COLUMN, as editors jump to it; -f sarif for code scanning
    periplus check --baseline last --fail-on error      only what the check before did not find
    periplus check --offline -f csv -o issues.csv       send no request: use stored answers
    periplus check --suggest https://web.archive.org/cdx/search/cdx     archived copies beside broken links
    """
    from periplus.analyse.grades import fail_on, least_grades
    from periplus.api.grading import baseline_run, grades_now, new_since, store_issues
    from periplus.api.homes import settings_before
    from periplus.api.page_segments import issues_within, require_segment
    from periplus.api.positions import issues_of

    urls, local, place = _places(starts, lists, collection)
    flags |= with_folders(flags, local)
    are_pages = bool(starts) and all(is_path(text) and Path(text).is_file() for text in starts)
    if (are_pages or (lists and not starts)) and flags["max_depth"] is None:
        flags["max_depth"] = 0
    here = place if isinstance(place, Path) else Path()  # the periplus.toml that holds for it
    settings = settings_of(flags, here, None if urls else settings_before(place))
    order = None
    if not flags["offline"]:
        from periplus.api.checking import order_for

        order = order_for(place, urls, settings, **{name: flags[name] for name in ("external", "fragments", "head")})
    if flags["segment"]:
        require_segment(place, flags["segment"])  # before the first request
    conditions, least, quiet = fail_on(flags["fail_on"]), least_grades(flags["fail_below"]), bool(flags["quiet"])
    baseline = baseline_run(place, flags["baseline"]) if flags["baseline"] else 0
    end = _run(order, flags) if order is not None else None
    note = (lambda sentence: None) if quiet else (lambda sentence: say(sentence, "yellow"))
    issues = issues_of(place, settings, flags["site"], fragments=flags["fragments"], near=flags["near"], note=note)
    if end is not None:
        store_issues(place, end.run_id, issues)
        if not quiet:
            _say_end(end)
    listed = new_since(place, issues, baseline) if baseline else issues
    listed = issues_within(place, flags["segment"], listed) if flags["segment"] else listed
    if flags["suggest"]:
        listed = _add_copies(place, listed, flags["suggest"], settings, quiet=quiet)
    with open_output(flags["output"], exact=flags["format"] != "table") as out:
        _write(flags["format"], listed, settings.identity.folders, out)
    code = _gate(conditions, listed, baseline, quiet=quiet)
    if not flags["site"]:  # they are of a collection as a whole
        code = _grade_gate(grades_now(place, issues.sums()), least, quiet=quiet) or code
    if end is not None and end.state == "failed":
        say(f"{end.note[:1].upper()}{end.note[1:]}.", "red")
    sys.exit(code or (EXIT[end.state] if end is not None else 0))


def _add_copies(place: Place, issues: IssueTable, server: str, settings: Settings, *, quiet: bool) -> IssueTable:
    from periplus.cli.progress import Watch

    watch = Watch()
    ask = (lambda done, count: None) if quiet else (lambda done, count: watch("Asking the archive", done, count))
    done = service("archived copies")(place, issues, server, settings, ask)
    if not quiet:
        left = f", {done.left:,} not requested" if done.left else ""
        say(f"Archived copies of {done.copies:,} among {count_of(done.asked, 'broken URL', 'broken URLs')}{left}.")
    if done.fault:
        say(f"The archive did not answer every request: {done.fault}.", "yellow")
    named: IssueTable = done.issues
    return named


def shorten_paths(issue: Issue, shown: Callable[[str], str]) -> Issue:
    """The issue with paths in place of the addresses of local files. shown: the path of an address."""
    return replace(
        issue,
        url=_file(shown(issue.url)),
        detail=shown(issue.detail),
        related=shown(issue.related),
        cause=_file(shown(issue.cause)) if issue.cause == issue.url else shown(issue.cause),
    )


def _shorten_fault_paths(fault: Fault, shown: Callable[[str], str]) -> Fault:
    issues = tuple(shorten_paths(issue, shown) for issue in fault.issues)
    return replace(fault, cause=issues[0].cause or issues[0].url, issues=issues, detail=shown(fault.detail))


def _file(path: str) -> str:
    """A path; of a folder that of the file in it that was read as its page, which editors can open."""
    names = (path + name for name in INDEX_FILES) if path.endswith("/") else ()
    return next((name for name in names if Path(name).is_file()), path)


def _say_end(end: CheckEnd) -> None:
    if end.state == "failed":
        return
    if end.left:
        say(
            f"The crawl stopped ({end.left}): waiting pages were not fetched and their links not checked. "
            f"`periplus crawl` continues it.",
            "yellow",
        )
    say(
        f"Check {end.run_id} {end.state}{f': {end.note}' if end.note else ''}; {end.asked:,} "
        "requests besides the crawl's."
    )


def _places(
    starts: tuple[str, ...], lists: tuple[Any, ...], collection: Place | None
) -> tuple[tuple[Url, ...], tuple[str, ...], Place]:
    """(where to begin, local folders as their setting has them, the collection)."""
    lines = [line for file in lists for line in lines_of(file)]
    urls, local = starts_of([*starts, *lines])
    if urls:
        return urls, local, collection_place(collection or Path(site_name(urls[0]) + SUFFIX))
    if lists:
        raise UsageError("the list names no URL")
    try:
        return (), (), collection_place(collection)
    except NoCollection as error:
        raise UsageError(f"no URL to check, and {error}") from None


def _run(order: CheckOrder, flags: dict[str, Any]) -> CheckEnd:
    """The end of the check. Ends the program if the user interrupted it, or if the crawl before it did not end."""
    from periplus.api.checking import check as run
    from periplus.api.crawling import check_order

    check_order(order.crawl)
    configure_logs(flags["verbose"])
    notice(order.crawl.settings)
    stopping = StopOnSignal()
    with crawl_display(lambda: stopping.asked, quiet=flags["quiet"] or flags["no_progress"]) as watch:
        end = run(order, watch)
    if stopping.asked or not end.run_id:
        failed = end.state == "failed"
        say(
            f"{end.state.capitalize()}: {end.note}. {advice(end.note) if failed else 'The same command continues.'}",
            "red" if failed else "yellow",
        )
        sys.exit(EXIT_INTERRUPT if stopping.asked else EXIT[end.state])
    return end


def _gate(conditions: Sequence[Condition], issues: IssueTable, baseline: int, *, quiet: bool) -> int:
    """Prints the sums and whether the site passes. Returns the exit code."""
    from periplus.analyse.grades import counts, gate

    counted = counts(issues.sums())
    result = gate(conditions, counted, baseline=f"check {baseline}" if baseline else "")
    if not quiet:
        sums = ", ".join(
            f"{counted[severity]:,} {severity}{'' if counted[severity] == 1 else 's'}"
            for severity in ("error", "warning", "notice")
        )
        sums += f", on {count_of(issues.pages(), 'page')}" if issues else ""
        say(
            f"{sums}." + (f" {result.sentence.capitalize()}." if conditions else ""),
            "red" if result.failed else "",
        )
    return EXIT_GATE if result.failed else 0


def _grade_gate(grades: Sequence[FieldGrade], least: Mapping[GradedField, int], *, quiet: bool) -> int:
    """Prints the grades and the fields below their limit. Returns the exit code."""
    from periplus.analyse.grades import below, grade_line

    worse = below(grades, least)
    if not quiet:
        if grades:
            say(f"Grades: {grade_line(grades)}.")
        if worse:
            say(f"Failed: {'; '.join(worse)}.", "red")
    return EXIT_GATE if worse else 0


def _write(format: str, table: IssueTable, folders: Sequence[str], out: TextIO) -> None:
    """folders: local folders, as in their setting; files in them are shown as paths."""
    from periplus.analyse.audit import issue_kinds
    from periplus.model.tables import ISSUES
    from periplus.present.issues import LISTED_PAGES, fault_list, gcc, github, issue_row, junit, sarif
    from periplus.present.tables import write_table

    issues, faults = iter(table), table.faults(LISTED_PAGES)
    if folders:
        shown = path_formatter(folders_of(folders), Path.cwd())
        issues = (shorten_paths(issue, shown) for issue in table)
        grouped = (
            sorted(
                (_shorten_fault_paths(fault, shown) for fault in group), key=lambda fault: (-fault.pages, fault.cause)
            )
            for _, group in groupby(table.faults(LISTED_PAGES), key=lambda fault: fault.code)
        )
        faults = chain.from_iterable(grouped)
    if format == "junit":
        out.writelines(junit(list(faults), issue_kinds()))
    elif format == "github":
        out.writelines(line + "\n" for line in github(faults, issue_kinds()))
    elif format == "gcc":
        out.writelines(line + "\n" for line in gcc(issues, issue_kinds()))
    elif format == "sarif":
        out.writelines(sarif(issues, issue_kinds()))
    elif format == "table":
        out.writelines(line + "\n" for line in fault_list(table.sums(), faults))
    else:
        from periplus.api.audit import issue_rows

        rows = (issue_row(issue, issue_kinds()) for issue in issues) if folders else issue_rows(table)
        write_table(ISSUES.names, rows, format, out)
