"""`periplus demo`."""

from __future__ import annotations

import sys

import click

from periplus.cli.options import option
from periplus.errors import UsageError
from periplus_demo import coastnews, server, towns

_DEMO_PORT = 8000
_DEMO_SETTINGS = """\
# For the example webs of `periplus demo`. Do not crawl other people's sites like this.
[settings]
allow_private = true                  # the webs are served on this machine
resolve = ["*:{port}:127.0.0.1"]       # their invented names lead to it too
mine = ["127.0.0.1", "*.example"]     # your own hosts need no long delays
delay_s = 0.02
retry_wait_s = 0.2
recheck_wait_s = 0.5
"""


@click.command()
@option("--port", "The port to listen on; 0: any that is free.", click.IntRange(0, 65535), _DEMO_PORT)
@option("--settings", "Print a periplus.toml for fast crawls of the webs, and serve nothing.", bool)
@option("--repaired", "Serve the first site without its broken links, to see the next check improve.", bool)
def demo(port: int, settings: bool, repaired: bool) -> None:
    """Serve three small example webs on this machine, to try the commands on.

    A site in eight languages with planted faults, ten news sites that copy each other's stories, and the sites of eight
    towns that link to each other. The tutorials use them. Nothing leaves this machine; Ctrl-C ends it.

    \b
    periplus demo                                in one terminal
    periplus demo --settings > periplus.toml     in another one, where the collections are to be
    periplus crawl http://127.0.0.1:8000/
    """
    if settings:
        click.echo(_DEMO_SETTINGS.format(port=port), nl=False)
        return

    def ready(port: int) -> None:
        shown_port = "" if port == _DEMO_PORT else f" --port {port}"
        click.echo(
            f"A site with planted faults:  http://{server.LOOPBACK}:{port}/\n"
            f"Ten news sites:              {coastnews.starts(str(port))[0]} and others\n"
            f"Eight towns:                 {towns.starts(str(port))[0]} and others\n"
            f"In another terminal:         periplus demo --settings{shown_port} > periplus.toml\n"
            f"                             periplus crawl http://{server.LOOPBACK}:{port}/\n"
            f"Ctrl-C ends it."
        )
        sys.stdout.flush()

    try:
        server.serve(port, ready, repaired=repaired)
    except OSError as error:
        raise UsageError(f"nothing can listen on port {port} ({error.strerror}): choose another with --port") from error
