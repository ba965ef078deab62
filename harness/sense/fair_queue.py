"""Fair queue: serves the source with the fewest probes in flight."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class OfSource(Protocol):
    """Something that waits for a thread."""

    source: str


T = TypeVar("T", bound=OfSource)


class FairQueue(Generic[T]):
    """The tasks that wait for a thread, by source.

    A source whose probes hang keeps only threads that no other source can use: the others have
    fewer probes in flight, so they get the next free thread. It is not thread-safe: the caller
    holds a lock.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._under_way: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._waiting.values()))

    def add(self, tasks: Iterable[T]) -> None:
        """Let tasks wait, each behind those of its source."""
        for task in tasks:
            self._waiting.setdefault(task.source, deque()).append(task)

    def take(self) -> T:
        """Return the next task, which is in flight from now on."""
        source = min(self._waiting, key=self._under_way.__getitem__)
        waiting = self._waiting.pop(source)
        task = waiting.popleft()
        if waiting:
            # At the end: sources that are level take turns.
            self._waiting[source] = waiting
        self._under_way[source] += 1
        return task

    def ended(self, task: T) -> None:
        """Record that a task is no longer under way."""
        self._under_way[task.source] -= 1

    def drop(self, source: str) -> list[T]:
        """Let nothing of a source wait any longer; return what did."""
        return list(self._waiting.pop(source, ()))

    def drop_all(self) -> list[T]:
        """Let nothing wait any longer; return what did."""
        return [task for source in tuple(self._waiting) for task in self.drop(source)]
