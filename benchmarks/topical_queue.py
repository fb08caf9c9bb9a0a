"""Time to choose among a million pages, and to update the queue after a page.

CPU seconds per page, compared with scoring all pages for each choice.

python benchmarks/topical_queue.py [PAGES]
"""

from __future__ import annotations

import random
import resource
import sys
import time

import numpy as np

from periplus.model.web import Url
from periplus_topics.schedule.policy import Pointer, expected_relevance
from periplus_topics.schedule.queue import PageQueue

LINKS, HOSTS, CHOICES = 40, 10_000, 2_000


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = random.Random(1)
    queue = PageQueue(expected_relevance)

    def pointers() -> list[Pointer]:
        places = ((rng.randrange(HOSTS), rng.randrange(pages)) for _ in range(LINKS))
        return [
            Pointer(Url(f"https://h{host}.test/d{page % 9}/{page}"), f"word{page % 5000:x}", rng.random())
            for host, page in places
        ]

    queue.start([Url("https://h0.test/")])
    begun = time.process_time()
    for number in range(pages // LINKS):
        queue.seen.book(Url(f"https://h{number % HOSTS}.test/read/{number}"), rng.random() ** 4, pointers())
    booked = time.process_time() - begun
    begun = time.process_time()
    queue.score_all()
    whole = time.process_time() - begun
    took = heard = 0.0
    for _ in range(CHOICES):
        begun = time.process_time()
        url = queue.take()
        took += time.process_time() - begun
        assert url is not None
        links = pointers()
        begun = time.process_time()
        queue.read(url, rng.random() ** 4, links)
        heard += time.process_time() - begun
    waiting = int(np.count_nonzero(queue.seen.waits))
    print(
        f"{waiting:,} pages wait on {len(queue.seen.hosts):,} hosts; "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:,.0f} MB"
    )
    print(
        f"choose the next: {took / CHOICES * 1e3:.3f} ms a page; update after a page ({LINKS} links): "
        f"{heard / CHOICES * 1e3:.3f} ms, with occasional rescoring of all"
    )
    print(
        f"score all again: {whole:.2f} s, {whole / (took / CHOICES):,.0f} times a choice; to add "
        f"{pages // LINKS:,} pages took {booked:.1f} s"
    )


if __name__ == "__main__":
    main()
