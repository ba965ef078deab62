"""Does one thing after another in a thread of its own, so that whoever asks can stop waiting."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """One lasting thread. A daemon: what hangs in it does not keep the process from ending.

    The thread lasts because each Python thread that calls the JVM holds a thread there.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_done: Callable[[], bool] = lambda: True

    @property
    def is_free(self) -> bool:
        """Whether nothing hangs in the thread."""
        return self._is_done()

    def do(self, work: Callable[[], T], *, within: float) -> T:
        """Return what the work returns, or raise what it raises.

        Raises:
            TimeoutError: It goes on after so many seconds, or what was asked before does.
        """
        answer: Future[T] = Future()
        with self._lock:
            if not self.is_free:
                raise TimeoutError
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            self._is_done = answer.done
            self._tasks.put(lambda: _run(work, answer))
            return answer.result(within)

    def _serve(self) -> None:
        while True:
            self._tasks.get()()


def _run(work: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(work())
    except BaseException as error:
        answer.set_exception(error)
