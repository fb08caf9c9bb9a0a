"""Disk errors of the job queue."""

import pytest

from periplus.errors import StoreError
from periplus.model.job import JobOrder
from periplus.store.sqlite.job_file import folder_queue


def order(name):
    return JobOrder(("crawl", name))


def test_a_full_disk_is_reported_and_no_job_is_lost(tmp_path):
    queue = folder_queue(tmp_path)
    queue.add(order("a"), now=0)
    pages = queue.database.connection.execute("PRAGMA page_count").fetchone()[0]
    queue.database.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match=r"the job queue cannot be written: .*full\. Is the disk full"):
        queue.add(order("b" * 100_000), now=1)
    queue.database.connection.execute("PRAGMA max_page_count = 1000000")
    queue.add(order("c"), now=2)
    assert [job.order.command[1] for job in queue.jobs()] == ["a", "c"]
    queue.close()
