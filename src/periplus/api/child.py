"""Entry point of an additional crawl worker: `python -m periplus.api.child`, started by `crawling.start_worker`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import cast

from periplus.api.crawling import CrawlOrder, PolicyMaker, run_worker
from periplus.children import Parent
from periplus.features import is_address, parts
from periplus.logs import JsonLines, configure_child
from periplus.model.web import Url
from periplus.settings import settings_from


def main() -> None:
    """Works until no work is left, on SIGTERM, or until the parent process dies."""
    configure_child()
    parent = Parent()
    content = parent.order
    JsonLines.run = content["run_id"]
    order = CrawlOrder(
        content["place"] if is_address(content["place"]) else Path(content["place"]),
        tuple(map(Url, content["starts"])),
        settings_from(content["settings"]),
        content["rules"],
        content["kind"],
        further=tuple((name, value) for name, value in content["further"]),
    )
    signal.signal(signal.SIGTERM, lambda number, frame: parent.ended.set())
    store = order.home.store(content["run_id"], order.settings)
    try:
        part = parts("policies").get(order.kind)  # by kind of run; the default is round robin over hosts
        make = cast("PolicyMaker", part.load(object)) if part else None
        run_worker(store, order, parent.ended.is_set, make(store, order) if make else None)
    finally:
        store.close()


if __name__ == "__main__":
    main()
