"""How does a crawl look on a terminal? A few lines that are drawn anew four times a second."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from periplus.api.crawling import Progress
from periplus.cli.progress import amount, duration

HOSTS_SHOWN = 6


class Panel:
    """The live lines on stderr; gone when it stops."""

    def __init__(self) -> None:
        self._live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4, transient=True)

    def start(self) -> None:
        self._live.start()

    def stop(self) -> None:
        self._live.stop()

    def show(self, progress: Progress, pages_per_s: float, troubles: Sequence[str]) -> None:
        counts = progress.counts
        head = Text.assemble(
            (f"{counts.fetched:,}", "bold"), " fetched   ", (f"{counts.waiting:,}", "bold"), " waiting   ", (f"{counts.known:,}", "bold"), " known   ",
            (f"{pages_per_s:.1f}", "bold"), " pages/s   ", amount(counts.wire_bytes), "   ", duration(progress.elapsed_s),
            f"   {progress.workers} workers" if progress.workers > 1 else "",
        )  # fmt: skip
        lines: list[Text | Table] = [head]
        if troubles:
            lines.append(Text(" · ".join(troubles), style="yellow"))
        if progress.hosts:
            lines.append(_hosts(progress))
        self._live.update(Group(*lines))


def _hosts(progress: Progress) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for host in progress.hosts[:HOSTS_SHOWN]:
        wait = f"waits {duration(host.wait_s)}: {host.waits_for}" if host.wait_s > 1 else "being asked" if host.leased else "ready"
        table.add_row(Text(host.host, style="cyan"), f"{host.fetched:,} fetched", f"{host.pending:,} waiting", Text(wait, style="dim"))
    return table
