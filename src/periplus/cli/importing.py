"""`periplus import`: a collection from an archive, without fetching."""

from __future__ import annotations

import click


@click.group("import")
def imports() -> None:
    """Make a collection of what others archived; nothing is fetched."""
