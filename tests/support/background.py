"""A background without threads: its calls run when a test lets time pass, or waits for them."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Background(Executor):
    """Runs each call later, one at a time and in order: as time passes, or when it is waited for."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        future = _Awaited[_T](self.advance)

        def call() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        self._calls.append(call)
        return future

    def advance(self) -> bool:
        """Run the next call; return whether there was one."""
        if self._calls:
            self._calls.popleft()()
            return True
        return False


class _Awaited(Future[_T]):
    """Has the calls before it and its own run when it is waited for."""

    def __init__(self, advance: Callable[[], bool]) -> None:
        super().__init__()
        self._advance = advance

    def _wait(self) -> None:
        while not self.done() and self._advance():
            pass

    def result(self, timeout: float | None = None) -> _T:
        self._wait()
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait()
        return super().exception(0)
