"""Outcomes that arrive later, and the threads they come from."""

import threading

import pytest

from lance_server.runtime.completion import Completion, wake_all
from lance_server.runtime.scheduling import WorkerPool

# Outcomes ---------------------------------------------------------------------------------------


def test_an_outcome_wakes_everyone_once() -> None:
    """However often somebody asked to be woken."""
    outcome: Completion[int] = Completion()
    woken: list[str] = []
    waiter = lambda: woken.append("once")  # noqa: E731 - the same function, twice
    outcome.wake(waiter)
    outcome.wake(waiter)
    outcome.settle(5)
    assert (woken, outcome.result()) == (["once"], 5)


def test_who_waits_for_several_outcomes_is_woken_once_where_all_are_decided_first() -> None:
    """And then sees every one of them."""
    outcomes: list[Completion[int]] = [Completion() for _ in range(3)]
    woken: list[bool] = []
    waiter = lambda: woken.append(all(each.done for each in outcomes))  # noqa: E731
    for each in outcomes:
        each.wake(waiter)
    wake_all(outcomes[0].decide(1) | outcomes[1].decide(error=OSError()) | outcomes[2].decide(3))
    assert woken == [True]


def test_a_waiter_that_fails_does_not_keep_the_others_from_being_woken() -> None:
    """What went wrong is logged."""
    outcome: Completion[None] = Completion()
    woken: list[int] = []
    outcome.wake(lambda: woken.append(1 // 0))
    outcome.wake(lambda: woken.append(2))
    outcome.settle(None)
    assert woken == [2]


def test_a_settled_outcome_wakes_at_once() -> None:
    """Nobody waits for what has happened."""
    outcome: Completion[int] = Completion()
    outcome.settle(5)
    woken: list[int] = []
    outcome.wake(lambda: woken.append(1))
    assert woken == [1]


def test_a_converted_outcome_passes_values_and_errors_on() -> None:
    """Errors of the conversion are its own."""
    good: Completion[int] = Completion()
    bad: Completion[int] = Completion()
    doubled, broken, failed = good.then(lambda n: n * 2), good.then(lambda n: n // 0), bad.then(str)
    good.settle(21)
    bad.fail(KeyError("x"))
    assert doubled.result() == 42
    assert isinstance(broken.error, ZeroDivisionError)
    assert isinstance(failed.error, KeyError)


# Worker threads ---------------------------------------------------------------------------------


def test_a_pool_never_has_more_threads_than_allowed() -> None:
    """Jobs wait in order when all threads are busy."""
    pool = WorkerPool("test", 2)
    gate, both = threading.Event(), threading.Barrier(3)
    running: list[str] = []

    def job() -> None:
        running.append(threading.current_thread().name)
        if len(running) <= 2:
            both.wait(10)
            gate.wait(10)

    for _ in range(6):
        pool.submit(job)
    both.wait(10)
    assert len(running) == 2
    gate.set()
    assert pool.close(10)
    assert len(running) == 6
    assert len(set(running)) == 2


def test_a_pool_starts_threads_only_when_they_are_needed() -> None:
    """One job after the other needs one thread."""
    pool = WorkerPool("test", 4)
    for _ in range(5):
        done = threading.Event()
        pool.submit(done.set)
        assert done.wait(10)
    assert pool.close(10)
    assert len(pool._threads) <= 2


def test_a_pool_that_may_start_no_more_threads_goes_on_with_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interpreter that ends refuses them, and its last jobs are done all the same."""
    pool = WorkerPool("test", 4)
    pool.begin()

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    first, gate, last = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        first.set()
        gate.wait(10)

    pool.submit(work)
    assert first.wait(10)
    pool.submit(last.set)
    gate.set()
    assert last.wait(10)
    assert pool.close(10)


def test_a_busy_pool_does_not_hold_up_its_end() -> None:
    """Closing has a deadline."""
    pool = WorkerPool("test", 1)
    gate = threading.Event()
    pool.submit(lambda: gate.wait(10) and None)
    assert not pool.close(0.05)
    gate.set()
    assert pool.close(10)
