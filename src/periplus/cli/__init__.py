"""The command line: a front over `api`, without logic of its own. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import click

HELP_ALL = "periplus.help_all"  # click's key: the help shows every command or flag


def show_all(ctx: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    """The callback of --help-all."""
    if is_asked and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
