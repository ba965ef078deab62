"""Asks Spark about the rows that a probe found; started only when a control row asks for rows."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness.errors import ProbeFailedError
from harness.platform.masking import masked
from harness.platform.sql_names import column_in_sql
from harness.platform.text import first_line
from harness.sense.preprocess.policy import NEW_DATA, uncalled, unread
from harness.sense.preprocess.query import is_larger, needed_key, rendered
from harness.sense.preprocess.spark_plan import NO_VARIABLES, use_in
from harness.sense.probe import QueryBounds
from harness.store.work_lists import Upstream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: So many queries are known to keep to what they may read; the others are read again.
_MOST_KNOWN = 10_000
_SECONDS_BETWEEN_CANCELS = 1.0

#: Reads the rows in question in the session that asks.
Rows = Callable[["SparkSession"], "DataFrame"]


class Questions(Protocol):
    """The two questions."""

    def largest(self, rows: Rows, column: str) -> str | None:
        """Return the largest value among the rows, as text; the column as SQL names it."""
        ...

    def any_row(self, rows: Rows, query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row."""
        ...


class SparkQuestions:
    """Answers from Spark; safe to ask from many threads at once.

    Each thread has a Spark session of its own beside the given one: temporary views belong to a
    session, so ``sensor_new_data`` of one probe is never that of another.

    Args:
        session: Returns the Spark session.
        bounds: What holds for a query.
    """

    def __init__(
        self, session: "Callable[[], SparkSession]", bounds: QueryBounds | None = None
    ) -> None:
        self._session = session
        self._bounds = bounds or QueryBounds()
        self._own = threading.local()
        #: Queries that have been read and keep to what they may.
        self._known: set[str] = set()

    def largest(self, rows: Rows, column: str) -> str | None:
        """Return the largest value among the rows, as text; the column as SQL names it."""
        session = self._own_session()
        from pyspark.sql import functions as f

        what = f"the largest {column}"
        with _one_sentence(f"{what} cannot be read"), self._limited(session, what):
            values = rows(session).select(f.col(column).alias("value"))
            if dict(values.dtypes)["value"] in {"double", "float"}:
                values = values.where(~f.isnan("value"))
            answer = values.agg(f.max("value").cast("string").alias("largest")).collect()
        found: str | None = answer[0]["largest"]
        return found

    def any_row(self, rows: Rows, query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row.

        The query stands as a subquery, where nothing but a query is admitted, and is run only when
        it reads nothing but what it may.
        """
        session = self._own_session()
        wrapped = f"select 1 from (\n{query.strip().rstrip(';')}\n) limit 1"
        what = "its preprocess_query"
        with _one_sentence(f"{what} fails"), self._limited(session, what):
            self._stop_if_it_reaches_out(session, wrapped)
            rows(session).createOrReplaceTempView(NEW_DATA)
            try:
                return len(session.sql(wrapped).collect()) > 0
            finally:
                session.catalog.dropTempView(NEW_DATA)

    def _stop_if_it_reaches_out(self, session: "SparkSession", query: str) -> None:
        if query in self._known:
            return
        use = use_in(session, query)
        phrases = [*unread(use, self._bounds.may_read), *uncalled(use)]
        if phrases:
            raise ProbeFailedError(f"its preprocess_query {phrases[0]}")
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known.add(query)

    @contextmanager
    def _limited(self, session: "SparkSession", what: str) -> Iterator[None]:
        """Cancel the Spark jobs that this thread starts once they take too long."""
        seconds, context = self._bounds.seconds, session.sparkContext
        tag, is_over, is_late = f"heartbeat-{uuid.uuid4()}", threading.Event(), threading.Event()

        def cancel_when_late() -> None:
            if is_over.wait(seconds):
                return
            is_late.set()
            context.cancelJobsWithTag(tag)
            # A query is several jobs, and one that begins later is to end, too.
            while not is_over.wait(_SECONDS_BETWEEN_CANCELS):
                context.cancelJobsWithTag(tag)

        context.addJobTag(tag)
        threading.Thread(target=cancel_when_late, name=tag, daemon=True).start()
        try:
            yield
        except Exception as error:
            if is_late.is_set():
                message = f"{what} takes longer than {seconds:g} s, and was cancelled"
                raise ProbeFailedError(message) from error
            raise
        finally:
            is_over.set()
            context.removeJobTag(tag)

    def _own_session(self) -> "SparkSession":
        own: SparkSession | None = getattr(self._own, "session", None)
        if own is None or own.sparkContext._jsc is None:
            own = self._own.session = self._session().newSession()
            own.conf.set(*NO_VARIABLES)
        return own


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the rows say of a change."""

    is_change: bool
    #: The largest value of ``upstream_key`` after it, where that is kept.
    upstream_value: str | None


def evaluate(questions: Questions, upstream: Upstream, rows: Rows, *, is_baseline: bool) -> Answer:
    """Ask the new rows what the upstream's control row wants to know of them.

    Args:
        questions: Answers.
        upstream: Names the key and the query; without a query nothing is evaluated.
        rows: The new rows.
        is_baseline: Only the largest value is wanted: it is the one to outgrow.

    Raises:
        ProbeFailedError: The query or the key does not fit the rows.
    """
    query, key = rendered(upstream), needed_key(upstream)
    value = upstream.upstream_value
    if key is not None:
        found = questions.largest(rows, column_in_sql(key))
        if found is not None and (value is None or is_larger(found, value)):
            value = found
    if query is None or is_baseline:
        return Answer(is_change=not is_baseline, upstream_value=value)
    return Answer(is_change=questions.any_row(rows, query), upstream_value=value)


@contextmanager
def _one_sentence(what: str) -> Iterator[None]:
    from harness.platform.spark.errors import Py4JError, Py4JJavaError, PySparkException

    try:
        yield
    except Py4JJavaError as error:
        # The text of the Python error begins with how it was called, and may hold an address.
        message = error.java_exception.getMessage() or error.java_exception
        raise ProbeFailedError(f"{what}: {_reason(str(message))}") from None
    except (PySparkException, Py4JError) as error:
        raise ProbeFailedError(f"{what}: {_reason(str(error) or repr(error))}") from error


def _reason(text: str) -> str:
    return first_line(masked(text), "no reason was given").strip().rstrip(".")
