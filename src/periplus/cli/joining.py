"""How does `periplus worker --store` help with a crawl that goes on?"""

from __future__ import annotations

import sys
from typing import Any

from periplus.cli.crawl import EXIT, INTERRUPTED, StopOnSignal, configure_logs, summary
from periplus.cli.progress import ProgressDisplay, say


def help_with_crawl(store: str, auth: str, *, quiet: bool, verbose: int) -> None:
    """Joins the crawl that goes on in the database, and ends the program with it; returns where none goes on."""
    from periplus.api.homes import home_of

    home = home_of(store)  # says which extra is missing
    from periplus.api.joining import join, run_in_progress, settings_of_run

    record = run_in_progress(store)
    if record is None:
        return
    settings = settings_of_run(record, auth)
    configure_logs(verbose)
    say(f"Joining run {record.id} of {home}: {', '.join(record.starts[:3])}{' and others' if len(record.starts) > 3 else ''}. Ctrl-C leaves it.")
    stopping = StopOnSignal()
    with ProgressDisplay(quiet=quiet) as display:

        def watch(progress: Any) -> bool:
            display.show(progress)
            return bool(stopping.asked)

        end = join(store, record, settings, watch)
    summary(end, str(home), f"periplus status --store '{home}'")
    sys.exit(INTERRUPTED if stopping.asked else EXIT[end.state])
