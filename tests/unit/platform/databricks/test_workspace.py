"""The clock that ends the SDK's retry loop after its first request."""

import threading

from harness.platform.databricks.workspace import OneRequestClock


def test_waiting_moves_the_clock_past_any_deadline() -> None:
    clock = OneRequestClock()
    deadline = clock.time() + 300
    clock.sleep(1)
    assert clock.time() > deadline


def test_one_threads_wait_does_not_end_another_threads_request() -> None:
    clock = OneRequestClock()
    deadline = clock.time() + 300
    other = threading.Thread(target=clock.sleep, args=(1,))
    other.start()
    other.join()
    assert clock.time() < deadline
