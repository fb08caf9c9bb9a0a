"""A package beside Periplus that adds one of each: a media type, a file format, a finding, a rule of choice, a command,
a kind of job, a name in Python.

It declares them in recipes_feature; its metadata lie beside it, in recipes-1.0.dist-info, as an installer would put
them.
"""

import html

import click
import numpy as np

from periplus.analyse.audit import Finding
from periplus.analyse.audit_input import IssueColumns
from periplus.document.conversion import Conversion, page
from periplus.jobs.presets import JobRequest, Preset
from periplus.model.audit import Category, IssueKind, Severity
from periplus.model.job import JobOrder
from periplus.present.writers import Writer
from periplus_studies.rules import ChoiceRule


def html_of(body):
    """A recipe: its name, then a line for each step."""
    name, *steps = body.decode("utf-8", "replace").splitlines()
    return Conversion(page([f"<p>{html.escape(step)}</p>" for step in steps], title=name))


def _write_markdown(table, rows, path):
    lines = [
        list(table.names),
        ["---"] * len(table.names),
        *([str(cell) for cell in row] for row in rows),
    ]
    path.write_text("".join(f"| {' | '.join(cells)} |\n" for cells in lines), encoding="utf-8")
    return f"{len(lines) - 2} lines of {table.name}"


markdown = Writer("text/markdown", _write_markdown)


shouting = Finding(
    IssueKind(
        "title-shouts", Severity.NOTICE, Category.TITLES, "Titles of 30 characters", "A sample.", "Write another."
    ),
    lambda site: IssueColumns(site.pages.place[site.pages.title_chars == 30]),
)


def fewest(budget, sites):
    """The site of which the fewest pages were read."""
    return ChoiceRule("fewest", lambda yields, rng: -yields.pages.astype(np.float64))


@click.command()
def cook():
    """Says what is for dinner."""
    click.echo("soup")


@click.command("menu")
def menu():
    """Writes the dishes."""
    click.echo("soup, bread")


def dinner():
    return "soup"


preset = Preset(
    "cook",
    "Cook",
    "Says what is for dinner.",
    "cook",
    lambda form, starts, folder, further: JobRequest(folder, JobOrder(("cook", *further))),
)
