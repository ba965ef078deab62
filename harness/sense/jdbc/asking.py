"""Asks one database about many tables within one time limit; a table that fails, fails alone."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.errors import LookFailedError
from harness.sense.jdbc.queries import (
    Answer,
    Dialect,
    Queries,
    Query,
    QueryRefusedError,
    QueryTooSlowError,
    Value,
)
from harness.sense.jdbc.window import (
    Seen,
    Subject,
    Window,
    largest_query,
    seen_in,
    up_to_query,
    windows_query,
)
from harness.settings_connections import Database

#: Tables in one statement.
_MOST_TABLES = 100
#: One table that is asked alone gets this part of the whole time.
_ALONE = 8
_LEAST_SECONDS = 0.05


class Asking:
    """One look's questions to one database.

    Args:
        queries: Asks the database.
        database: Which one.
        alone: Ids of upstreams that failed at the last look; kept up to date. They are asked
            alone, after all others.
        monotonic: Measures the time limit.
    """

    def __init__(
        self,
        queries: Queries,
        database: Database,
        alone: set[str],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queries = queries
        self._database = database
        self._alone = alone
        self._monotonic = monotonic
        self._ends = monotonic() + database.timeout_seconds
        self.failures: dict[str, LookFailedError] = {}

    @property
    def left(self) -> float:
        """Seconds until the time limit."""
        return self._ends - self._monotonic()

    def dialect(self) -> Dialect:
        """Return how to write statements for the database."""
        return self._queries.dialect(self._database, within=self.left)

    def largest(self, subject: Subject) -> Answer | None:
        """Ask for the largest key of one table; ``None`` when that failed."""
        try:
            answer = self._ask(largest_query(subject), self._slice())
        except (QueryRefusedError, QueryTooSlowError) as error:
            self._fail(subject, error)
            return None
        return answer

    def count(self, subject: Subject, start: Value, end: Value) -> int:
        """Count the rows of one table from a key to another."""
        answer = self._ask(up_to_query(subject, start, end), self._slice())
        return int(answer.rows[0][0] or 0)

    def windows(self, windows: Sequence[Window], dialect: Dialect) -> dict[str, Seen]:
        """Ask for many windows, by the upstream's id; one that failed is not in the answer."""
        seen: dict[str, Seen] = {}
        together = [each for each in windows if each.subject.id not in self._alone]
        for batch in _batches(together):
            seen.update(self._some(batch, dialect, self.left / 2))
        for window in windows:
            if window.subject.id in self._alone and window.subject.id not in self.failures:
                seen.update(self._some([window], dialect, self._slice()))
        return seen

    def _some(self, windows: Sequence[Window], dialect: Dialect, within: float) -> dict[str, Seen]:
        try:
            answer = self._ask(windows_query(windows, dialect), within)
        except (QueryRefusedError, QueryTooSlowError) as error:
            if len(windows) == 1:
                self._fail(windows[0].subject, error)
                return {}
            if isinstance(error, QueryTooSlowError):
                parts = [[window] for window in windows]
            else:
                middle = len(windows) // 2
                parts = [list(windows[:middle]), list(windows[middle:])]
            found: dict[str, Seen] = {}
            for part in parts:
                found.update(self._some(part, dialect, self._slice()))
            return found
        places = seen_in(answer)
        for window in windows:
            self._alone.discard(window.subject.id)
        return {window.subject.id: places[at] for at, window in enumerate(windows) if at in places}

    def _ask(self, query: Query, within: float) -> Answer:
        if self.left <= _LEAST_SECONDS:
            limit = self._database.timeout_seconds
            raise QueryTooSlowError(f"its turn did not come within the {limit:g} s of its database")
        return self._queries.ask(self._database, query, within=max(within, _LEAST_SECONDS))

    def _slice(self) -> float:
        return min(self.left, max(1.0, self._database.timeout_seconds / _ALONE))

    def _fail(self, subject: Subject, error: LookFailedError) -> None:
        self._alone.add(subject.id)
        self.failures[subject.id] = error


def _batches(windows: Iterable[Window]) -> Iterator[list[Window]]:
    """Put windows together whose keys are of one type, since one statement has one type."""
    by_type: dict[tuple[str, str], list[Window]] = {}
    for window in windows:
        by_type.setdefault((window.column.kind, window.column.type_name), []).append(window)
    for alike in by_type.values():
        for at in range(0, len(alike), _MOST_TABLES):
            yield alike[at : at + _MOST_TABLES]
