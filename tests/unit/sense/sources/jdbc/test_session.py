"""A thread of its own, for which no caller waits longer than its time limit."""

import threading

import pytest

from harness.sense.sources.jdbc.session import Worker


def test_what_the_work_returns_or_raises_comes_back() -> None:
    worker = Worker("w")

    assert worker.do(lambda: 7, within=5) == 7
    with pytest.raises(ZeroDivisionError):
        worker.do(lambda: 1 // 0, within=5)


def test_all_work_is_done_in_one_thread() -> None:
    worker = Worker("w")

    assert len({worker.do(threading.get_ident, within=5) for _ in range(3)}) == 1


def test_no_caller_waits_for_what_hangs_and_nothing_is_called_meanwhile() -> None:
    worker, end = Worker("w"), threading.Event()
    with pytest.raises(TimeoutError):
        worker.do(end.wait, within=0.01)
    with pytest.raises(TimeoutError):
        worker.do(lambda: 7, within=5)

    assert not worker.is_free
    end.set()
    while not worker.is_free:
        end.wait(0.001)
    assert worker.do(lambda: 7, within=5) == 7
