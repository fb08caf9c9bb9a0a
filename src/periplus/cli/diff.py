"""`periplus diff`: what changed between two runs."""

from __future__ import annotations

import click


@click.command()
def diff() -> None:
    """Compare two runs."""
