"""Order, ownership and results of jobs."""

import itertools
import multiprocessing
import threading
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from periplus.errors import StoreError, UsageError
from periplus.jobs.runner import make_order
from periplus.model.job import JobOrder, JobProgress, JobState
from periplus.store.sqlite.job_file import folder_queue
from periplus_postgres.connection import Session
from periplus_postgres.statements import database_queue


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, tmp_path):
    """Opens the queue of this test, any number of times."""
    if request.param == "sqlite":
        return partial(folder_queue, tmp_path)
    return partial(in_database, request.getfixturevalue("address"))


def in_database(address):
    return database_queue(Session(address))


@pytest.fixture
def queue(opened):
    queue = opened()
    yield queue
    queue.close()


@pytest.fixture
def fresh(request, opened, tmp_path):
    """Opens an empty queue each time."""
    if request.node.callspec.params["opened"] == "sqlite":
        numbers = itertools.count()
        return lambda: folder_queue(tmp_path / str(next(numbers)))

    def emptied():
        queue = opened()
        queue.database.run(lambda statements: statements.change("TRUNCATE job, schedule"))
        return queue

    return emptied


def order(name, **more):
    return JobOrder(("crawl", name), **more)


def test_greatest_priority_goes_first_then_the_oldest(queue):
    for name, priority in [("a", 0), ("b", 5), ("c", 0), ("d", 5)]:
        queue.add(order(name, priority=priority), now=0)
    claimed = [queue.claim("r", 1, 10).order.command[1] for _ in range(4)]
    assert claimed == ["b", "d", "a", "c"]
    assert queue.claim("r", 1, 10) is None


def test_a_job_waits_for_its_time(queue):
    queue.add(order("later", run_at=50), now=0)
    assert queue.claim("r", 49, 10) is None
    assert queue.claim("r", 50, 10).order.command[1] == "later"


def test_equal_requests_merge_with_the_higher_priority(queue):
    first = queue.add(order("a", priority=1, run_at=90), now=0)
    joined = queue.add(order("a", priority=7, run_at=20), now=0)
    assert joined.id == first.id
    assert (joined.order.priority, joined.order.run_at) == (7, 20)
    running = queue.claim("r", 20, 10)
    assert queue.add(order("a"), now=21).id == running.id
    queue.finish(running, JobState.DONE, "", 22)
    assert queue.add(order("a"), now=23).id != running.id


def test_progress_is_stored_and_a_cancellation_is_reported_at_the_next_heartbeat(queue):
    queue.add(order("a"), now=0)
    job = queue.claim("r", 1, 10)
    assert queue.beat(job, JobProgress(3, 9, "three"), 2, 10)
    assert (queue.job(job.id).done, queue.job(job.id).total, queue.job(job.id).note) == (3, 9, "three")
    queue.cancel(job.id, 3)
    assert not queue.beat(job, JobProgress(4, 9, ""), 4, 10)


def test_a_request_for_a_job_being_stopped_runs_afterwards(queue):
    queue.add(order("a"), now=0)
    stopping = queue.claim("r", 1, 10)
    queue.cancel(stopping.id, 2)
    again = queue.add(order("a"), now=3)
    assert again.id != stopping.id
    assert queue.add(order("a"), now=3).id == again.id
    assert queue.finish(stopping, JobState.QUEUED, "its runner stopped at the same moment", 4)
    assert (queue.job(stopping.id).state, queue.job(stopping.id).ended) == (JobState.CANCELLED, 4)
    assert queue.claim("r", 5, 10).id == again.id


def test_a_waiting_job_is_cancelled_at_once_and_an_ended_one_stays(queue):
    job = queue.add(order("a"), now=0)
    assert queue.cancel(job.id, 1).state is JobState.CANCELLED
    assert queue.claim("r", 2, 10) is None
    assert queue.cancel(job.id, 3).ended == 1


def test_a_job_of_a_dead_runner_is_claimed_again_and_its_late_report_is_dropped(queue):
    queue.add(order("a"), now=0)
    first = queue.claim("one", 1, 10)
    assert queue.claim("two", 11, 10) is None  # the lease is valid until its end
    second = queue.claim("two", 11.5, 10)
    assert (second.id, second.attempt, second.epoch) == (first.id, 2, 2)
    assert not queue.beat(first, JobProgress(1, 2, "ghost"), 12, 10)
    assert not queue.finish(first, JobState.DONE, "ghost", 12)
    assert queue.job(first.id).state is JobState.RUNNING
    assert queue.finish(second, JobState.DONE, "", 13)


def test_a_job_that_kills_its_runners_is_given_up(queue):
    queue.add(order("a", most_attempts=2), now=0)
    assert queue.claim("r", 0, 10)
    assert queue.claim("r", 11, 10)
    assert queue.claim("r", 22, 10) is None
    assert queue.jobs()[0].state is JobState.FAILED


def test_a_period_creates_one_job_per_tick_for_any_number_of_schedulers(queue, opened):
    queue.repeat(order("a"), 100, now=0)
    made = []

    def ask():
        mine = opened()
        made.extend(mine.tick(250))
        mine.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(made) == 1  # missed ticks at 0, 100 and 200 are not made up
    assert queue.schedules()[0].next_at == 300


def ticks_seen(opened, times, found):
    queue = opened()
    found.put(sum(len(queue.tick(time)) for time in times))
    queue.close()


def test_four_scheduler_processes_create_one_job_per_tick(queue, opened):
    queue.repeat(order("a"), 100, now=0)
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    schedulers = [fork.Process(target=ticks_seen, args=(opened, range(50, 2_951, 100), found)) for _ in range(4)]
    for scheduler in schedulers:
        scheduler.start()
    made = [found.get(timeout=600) for _ in schedulers]
    for scheduler in schedulers:
        scheduler.join(300)
    assert sum(made) == 30 and queue.schedules()[0].next_at == 3_000


def claims_seen(opened, found):
    queue, mine = opened(), []
    while job := queue.claim("r", 1, 10):
        mine.append(job.id)
    found.put(mine)
    queue.close()


def test_worker_processes_share_the_jobs(queue, opened):
    made = {queue.add(order(str(number)), now=0).id for number in range(60)}
    fork = multiprocessing.get_context("fork")
    found = fork.Queue()
    workers = [fork.Process(target=claims_seen, args=(opened, found)) for _ in range(4)]
    for worker in workers:
        worker.start()
    claimed = [job_id for _ in workers for job_id in found.get(timeout=600)]
    for worker in workers:
        worker.join(300)
    assert sorted(claimed) == sorted(made)


def test_a_paused_schedule_creates_no_job_and_a_deleted_one_is_gone(queue):
    schedule = queue.repeat(order("a"), 100, now=0)
    queue.pause(schedule.id, paused=True)
    assert queue.tick(500) == []
    queue.pause(schedule.id, paused=False)
    assert len(queue.tick(500)) == 1
    queue.forget(schedule.id)
    with pytest.raises(StoreError, match="no schedule"):
        queue.forget(schedule.id)


def test_a_joined_tick_is_no_second_job(queue):
    queue.add(order("a"), now=0)
    queue.repeat(order("a"), 100, now=0)
    queue.tick(1)
    assert queue.open_jobs() == 1


def test_the_list_has_running_then_waiting_then_ended_jobs(queue):
    for name, priority in [("low", 0), ("high", 9), ("run", 99), ("done", 100)]:
        queue.add(order(name, priority=priority), now=0)
    queue.finish(queue.claim("r", 1, 10), JobState.DONE, "", 2)
    queue.claim("r", 3, 10)
    assert [job.order.command[1] for job in queue.jobs()] == ["run", "high", "low", "done"]


def test_only_job_commands_can_be_queued():
    assert make_order(("crawl", "example.org")).kind == "crawl"
    for refused in [(), ("sql", "drop"), ("jobs", "run")]:
        with pytest.raises(UsageError, match="a job is one of"):
            make_order(refused)


class QueueMachine(RuleBasedStateMachine):
    """Random orders, claims, heartbeats, ends, cancellations and deaths: no job is lost or held twice."""

    def __init__(self, fresh):
        super().__init__()
        self.queue, self.now = fresh(), 0.0
        self.held, self.made = {}, set()

    def teardown(self):
        self.queue.close()

    @rule(name=st.sampled_from("abcdef"), priority=st.integers(0, 2))
    def add(self, name, priority):
        self.made.add(self.queue.add(order(name, priority=priority, most_attempts=99), self.now).id)

    @rule()
    def claim(self):
        job = self.queue.claim("r", self.now, 10)
        if job is not None:
            assert self.held.get(job.id, (0, -1))[1] < self.now  # no valid lease is broken
            self.held[job.id] = (job, self.now + 10)

    @rule(seconds=st.sampled_from([1.0, 6.0, 11.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule(data=st.data())
    def cancel(self, data):
        if self.made:
            self.queue.cancel(data.draw(st.sampled_from(sorted(self.made))), self.now)

    @rule(state=st.sampled_from([JobState.DONE, JobState.FAILED, JobState.QUEUED]), data=st.data())
    def finish(self, state, data):
        if self.held:
            job_id = data.draw(st.sampled_from(sorted(self.held)))
            job, until = self.held[job_id]
            accepted = self.queue.finish(job, state, "", self.now)
            assert (
                accepted
                or until < self.now
                or self.queue.job(job_id).epoch > job.epoch
                or self.queue.job(job_id).state is not JobState.RUNNING
            )
            del self.held[job_id]

    @invariant()
    def nothing_vanishes(self):
        assert {job.id for job in self.queue.jobs(most=10_000)} == self.made


def test_no_job_is_lost_or_held_twice(fresh):
    run_state_machine_as_test(
        lambda: QueueMachine(fresh), settings=settings(max_examples=12, stateful_step_count=25, deadline=None)
    )


def test_a_successor_is_queued_once_after_its_job(queue):
    queue.add(order("a", then=(("crawl", "b"), ("crawl", "c"))), now=0)
    for name in "abc":
        job = queue.claim("r", 3, 10)
        assert job.order.command[1] == name
        assert queue.claim("other", 3, 10) is None
        assert queue.finish(job, JobState.DONE, "", 2)
        assert not queue.finish(job, JobState.DONE, "", 2)
    assert queue.claim("r", 9, 10) is None


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED, JobState.QUEUED])
def test_unfinished_jobs_have_no_successor(queue, state):
    queue.add(order("a", then=(("crawl", "b"),)), now=0)
    queue.finish(queue.claim("r", 1, 10), state, "", 2)
    assert [job.order.command[1] for job in queue.jobs()] == ["a"]
    assert queue.jobs()[0].order.then == (("crawl", "b"),)


def test_a_schedule_gives_its_jobs_their_successors(queue):
    queue.repeat(order("a", then=(("crawl", "b"),)), 60, now=0)
    assert [job.order.then for job in queue.tick(1)] == [(("crawl", "b"),)]
