"""Queries one database about many tables within one time limit, in a thread of its own.

A table that fails, fails alone. The password is fetched at each login and hidden in all texts.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from harness.config.connections import Database
from harness.config.secrets import SecretResolver
from harness.errors import ProbeFailedError
from harness.platform.masking import mask
from harness.sense.database_queries import (
    Answer,
    Dialect,
    Queries,
    Query,
    QueryRefusedError,
    QueryTooSlowError,
    Value,
)
from harness.sense.sources.jdbc.watermark_sql import (
    Seen,
    Subject,
    Window,
    largest_query,
    seen_in,
    up_to_query,
    windows_query,
)


def credentials(database: Database, secrets: SecretResolver) -> dict[str, str]:
    """Return user and password, as far as there are any, by their names in JDBC.

    Raises:
        ConfigurationError: The password is not where the reference points.
    """
    found = {}
    if database.user:
        found["user"] = database.user
    if database.password:
        found["password"] = database.password.resolve(secrets).get_secret_value()
        mask(found["password"])
    return found


T = TypeVar("T")


class Worker:
    """One lasting thread. A daemon: what hangs in it does not keep the process from ending.

    The thread lasts because some drivers admit a connection only in the thread that made it.
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
            TimeoutError: It goes on after so many seconds, or earlier work does.
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


#: Tables in one statement.
_MOST_TABLES = 100
#: One table that is queried alone gets this part of the whole time.
_ALONE = 8
_LEAST_SECONDS = 0.05


class QuerySession:
    """One probe's queries to one database.

    Args:
        queries: Reads from the database.
        database: Which one.
        alone: Ids of upstreams that failed at the last probe; kept up to date. They are queried
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
        self.failures: dict[str, ProbeFailedError] = {}

    @property
    def left(self) -> float:
        """Seconds until the time limit."""
        return self._ends - self._monotonic()

    def dialect(self) -> Dialect:
        """Return how to write statements for the database."""
        return self._queries.dialect(self._database)

    def largest(self, subject: Subject) -> Answer | None:
        """Request the largest key of one table; ``None`` when that failed."""
        try:
            answer = self._query(largest_query(subject), self._slice())
        except (QueryRefusedError, QueryTooSlowError) as error:
            self._fail(subject, error)
            return None
        return answer

    def count(self, subject: Subject, start: Value, end: Value) -> int:
        """Count the rows of one table from a key to another."""
        answer = self._query(up_to_query(subject, start, end), self._slice())
        return int(answer.rows[0][0] or 0)

    def windows(self, windows: Sequence[Window], dialect: Dialect) -> dict[str, Seen]:
        """Request many windows, by the upstream's id; one that failed is not in the answer."""
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
            answer = self._query(windows_query(windows, dialect), within)
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

    def _query(self, query: Query, within: float) -> Answer:
        if self.left <= _LEAST_SECONDS:
            limit = self._database.timeout_seconds
            raise QueryTooSlowError(f"its turn did not come within the {limit:g} s of its database")
        return self._queries.ask(self._database, query, within=max(within, _LEAST_SECONDS))

    def _slice(self) -> float:
        return min(self.left, max(1.0, self._database.timeout_seconds / _ALONE))

    def _fail(self, subject: Subject, error: ProbeFailedError) -> None:
        self._alone.add(subject.id)
        self.failures[subject.id] = error


def _batches(windows: Iterable[Window]) -> Iterator[list[Window]]:
    """Put windows together whose keys are of one type, since one statement has one type."""
    by_type: dict[tuple[str, str], list[Window]] = {}
    for window in windows:
        # A key of an unknown type alone: another type may take digits from its values.
        type_name = window.column.type_name or window.subject.id
        by_type.setdefault((window.column.kind, type_name), []).append(window)
    for alike in by_type.values():
        for at in range(0, len(alike), _MOST_TABLES):
            yield alike[at : at + _MOST_TABLES]
