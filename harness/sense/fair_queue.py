"""Says whose turn it is when a thread is free: the source with the fewest looks under way."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class OfSource(Protocol):
    """Something that waits for a thread."""

    source: str


T = TypeVar("T", bound=OfSource)


class FairQueue(Generic[T]):
    """What waits for a thread, source by source.

    A source whose looks hang keeps only threads that no other source has a use for: the others
    have fewer looks under way, so the next free thread is theirs. It knows nothing of threads, and
    whoever uses it from several holds a lock.
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
        """Return the next task, which is under way from now on."""
        source = min(self._waiting, key=self._under_way.__getitem__)
        waiting = self._waiting.pop(source)
        task = waiting.popleft()
        if waiting:
            # At the end: sources that are level take turns.
            self._waiting[source] = waiting
        self._under_way[source] += 1
        return task

    def ended(self, task: T) -> None:
        """Note that a task is no longer under way."""
        self._under_way[task.source] -= 1

    def drop(self, source: str) -> list[T]:
        """Let nothing of a source wait any longer; return what did."""
        return list(self._waiting.pop(source, ()))

    def drop_all(self) -> list[T]:
        """Let nothing wait any longer; return what did."""
        return [task for source in tuple(self._waiting) for task in self.drop(source)]
