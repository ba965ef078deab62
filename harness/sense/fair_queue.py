"""Fair queue: serves the source with the fewest threads, and gives quick probes out in shares.

A share is what a thread takes at once. Its size, and how many threads work for a source, follow
from the shares before: how long their tasks took, and whether the threads computed or waited.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: What a share is meant to take: much more than taking it, and too little to hold others up.
_SHARE_SECONDS = 0.004
_LARGEST_SHARE = 256
#: After so much work, a source has shown whether another thread would help it.
_LEARN_SECONDS = 0.02
#: Python computes in one thread at a time. Where the threads of a source compute for this part of
#: the time in all, more of them only compete for the interpreter; where they wait, one more helps.
_MOSTLY_COMPUTES = 0.8
_MOSTLY_WAITS = 0.5

T = TypeVar("T")


@dataclass(slots=True)
class _Line(Generic[T]):
    """What waits of one source, and what its shares have shown."""

    waiting: deque[T] = field(default_factory=deque)
    #: Threads that have a share, and those among them whose share takes long.
    threads: int = 0
    slow: int = 0
    #: The next share has so many tasks; so many threads may have one besides those that are slow.
    share: int = 1
    width: int = 1
    #: What its threads have done since the width was set.
    seconds: float = 0.0
    computed: float = 0.0

    @property
    def is_active(self) -> bool:
        """Return whether it may need a thread: what is in a share may come back, too."""
        return bool(self.waiting) or self.threads > self.slow

    def room(self, most: int) -> int:
        """Return for how many more threads it has something, if it may have ``most`` in all."""
        free = min(most - self.threads, self.width - self.threads + self.slow)
        return max(0, min(len(self.waiting), free))

    def learn(self, *, count: int, seconds: float, computed: float, most: int) -> None:
        fitting = int(count * _SHARE_SECONDS / seconds) if seconds > 0 else _LARGEST_SHARE
        self.share = max(1, min(fitting, 2 * self.share, _LARGEST_SHARE))
        self.seconds += seconds
        self.computed += computed
        if self.seconds < _LEARN_SECONDS:
            return
        active = max(1, self.threads - self.slow)
        load = active * self.computed / self.seconds
        self.seconds = self.computed = 0.0
        if load < _MOSTLY_WAITS:
            self.width = min(self.width + 1, most)
        elif load > _MOSTLY_COMPUTES and not self.slow:
            self.width = max(1, min(self.width, active) - 1)


class FairQueue(Generic[T]):
    """The tasks that wait for a thread, by source.

    A source whose probes hang keeps only threads that no other source can use: the others have
    fewer probes in flight, so they get the next free thread. It is not thread-safe: the caller
    holds a lock.

    Args:
        threads: How many there are for all sources.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lines: dict[str, _Line[T]] = {}

    def __len__(self) -> int:
        """Return how many wait."""
        return sum(len(line.waiting) for line in self._lines.values())

    def add(self, source: str, tasks: Iterable[T]) -> None:
        """Let tasks wait, behind those of their source."""
        self._lines.setdefault(source, _Line()).waiting.extend(tasks)

    def room(self) -> int:
        """Return how many more threads find something to take."""
        return sum(self._rooms().values())

    def _rooms(self) -> dict[str, int]:
        # A source that needs one thread now may need its part of all of them in a moment.
        part = -(-self._threads // max(1, sum(line.is_active for line in self._lines.values())))
        rooms = ((source, line.room(part)) for source, line in self._lines.items())
        return {source: room for source, room in rooms if room}

    def take(self) -> tuple[str, deque[T]] | None:
        """Return a source and tasks of it, in flight from now on; nothing if there is no room."""
        rooms = self._rooms()
        if not rooms:
            return None
        source = min(rooms, key=lambda each: self._lines[each].threads)
        # At the end: sources that are level take turns.
        line = self._lines[source] = self._lines.pop(source)
        line.threads += 1
        count = min(line.share, len(line.waiting))
        return source, deque(line.waiting.popleft() for _ in range(count))

    def slow(self, source: str, rest: Sequence[T]) -> None:
        """Record that a share takes long: all threads may take tasks of its source, one by one.

        Args:
            source: The source of the share.
            rest: The tasks of it that are not begun; they are next.
        """
        line = self._lines[source]
        line.slow += 1
        line.share, line.width = 1, self._threads
        line.waiting.extendleft(reversed(rest))

    def learn(self, source: str, *, count: int, seconds: float, computed: float) -> None:
        """Fit the next shares of a source to one that is about to end.

        Args:
            source: The source of the share.
            count: How many tasks were done.
            seconds: How long they took.
            computed: How much of that a processor worked for them.
        """
        self._lines[source].learn(
            count=count, seconds=seconds, computed=computed, most=self._threads
        )

    def ended(self, source: str, *, was_slow: bool) -> None:
        """Record that a thread has no share any more."""
        line = self._lines[source]
        line.threads -= 1
        line.slow -= was_slow

    def drop(self, source: str) -> None:
        """Let nothing of a source wait any longer."""
        self._lines[source].waiting.clear()

    def drop_all(self) -> None:
        """Let nothing wait any longer."""
        for source in self._lines:
            self.drop(source)
