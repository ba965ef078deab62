"""What a history has in store for a process: when it dies, and what happens while it works.

Everything that a process does to the world passes a moment: before and after each commit, before and
after each request, at each named crash point. At any of them it may die, and the world may move on.
"""

import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class KilledError(BaseException):
    """The process is gone, in the middle of what it did; nothing in it may notice."""


class Fate:
    """Decides at every moment of a tick whether the process lives on.

    Args:
        note: Writes a line of the history down.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self._chance = random.Random(0)
        self._dies_at: str | int | None = None
        self._moves = 0.0
        self._count = 0
        #: Lets what goes on in the background come a step farther, and how often it does.
        self.beside: Callable[[], None] = lambda: None
        self.pace_beside = 0.0
        self._beside_chance = random.Random(0)
        self._is_beside = False
        #: The moment that was passed last.
        self.now = ""
        self.is_calm = True
        #: Lets something happen in the world.
        self.meanwhile: Callable[[], None] = lambda: None
        #: Lets others work while the process stands still, at a moment of this name.
        self.freeze: Callable[[], None] = lambda: None
        self.freezes_at: str | None = None
        #: The moments at which some process died, and how many did.
        self.died_at: set[str] = set()
        self.deaths = 0

    def begin(self, chance: random.Random, *, dies_at: str | int | None, moves: float) -> None:
        """Settle the fate of one tick: the moment it dies at, by name or by number."""
        self._chance, self._dies_at, self._moves, self._count = chance, dies_at, moves, 0
        # Of its own, so that the histories without a background are what they were.
        self._beside_chance = random.Random(chance.getstate()[1][1])
        self.is_calm = False

    def calm(self) -> None:
        """Let nothing happen any more, until the next tick begins."""
        self.is_calm = True

    def moment(self, name: str) -> None:
        """Pass a moment, or die at it."""
        if self.is_calm:
            return
        self._count += 1
        self.now = name
        if self._dies_at in (name, self._count):
            self.is_calm = True
            self.died_at.add(name)
            self.deaths += 1
            self.note(f"  killed {name}")
            raise KilledError(name)
        if not self._is_beside and self._beside_chance.random() < self.pace_beside:
            self._is_beside = True
            try:
                self.beside()
            finally:
                self._is_beside = False
        if self._chance.random() < self._moves:
            self._let(self.meanwhile)
        if name == self.freezes_at:
            self.freezes_at = None
            self._let(self.freeze)

    def _let(self, happen: Callable[[], None]) -> None:
        self.is_calm = True
        happen()
        self.is_calm = False

    def falls(self, probability: float) -> bool:
        """Draw once; nothing falls while it is calm."""
        return not self.is_calm and self._chance.random() < probability

    @property
    def chance(self) -> random.Random:
        """Draw something else for this tick."""
        return self._chance


class OneAfterTheOther(Executor):
    """Runs each call at once, in the order in which it is given, so that a history can be repeated.

    A process that dies in a call dies at once: what was answered before is not recorded any more.
    """

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
