"""Disk errors of the job queue, and its first use by several processes at once."""

import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from periplus.errors import StoreError
from periplus.model.job import JobOrder
from periplus.store.sqlite.job_file import DATABASE, folder_queue


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


def test_a_new_queue_waits_for_another_process_that_creates_it(tmp_path):
    """SQLite itself does not wait for this lock. The worker of `periplus serve` ended by it."""
    other = sqlite3.connect(tmp_path / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    is_opened = threading.Event()
    sys.addaudithook(lambda event, values: event == "sqlite3.connect" and is_opened.set())
    with ThreadPoolExecutor(1) as thread:
        opened = thread.submit(lambda: folder_queue(tmp_path).close())
        is_opened.wait()
        other.execute("COMMIT")
        other.close()
        opened.result()
