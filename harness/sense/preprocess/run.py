"""Evaluates the rows that a probe found, in Spark; started only if a control row requires rows."""

import re
import threading
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness.errors import ProbeFailedError
from harness.platform.masking import masked
from harness.platform.spark.session import message_of
from harness.platform.sql_names import column_in_sql
from harness.platform.text import first_line
from harness.sense.preprocess.policy import NEW_DATA, name_of, uncalled, unread
from harness.sense.preprocess.query import is_larger, needed_key, rendered
from harness.sense.probe import QueryBounds
from harness.store.work_lists import Upstream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harness.sense.preprocess.parser import ParsedQuery

#: So many queries that keep to what they may read are cached; the others are checked again.
_MOST_KNOWN = 10_000
_SECONDS_BETWEEN_CANCELS = 1.0

#: Reads the rows in question in the given session.
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
    """Runs its queries in Spark; safe to call from many threads at once.

    Args:
        session: Returns the Spark session.
        bounds: What holds for a query.
    """

    def __init__(
        self, session: "Callable[[], SparkSession]", bounds: QueryBounds | None = None
    ) -> None:
        self._session = session
        self._bounds = bounds or QueryBounds()
        #: The text that Spark receives of each query that keeps to what it may.
        self._known: dict[str, str] = {}

    def largest(self, rows: Rows, column: str) -> str | None:
        """Return the largest value among the rows, as text; the column as SQL names it."""
        session = self._session()
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

        The query is run only when it reads nothing but what it may. The rows have a view with a
        name of its own: probes side by side share the session.
        """
        session, view = self._session(), f"heartbeat_{uuid.uuid4().hex}"
        what = "its preprocess_query"
        with _one_sentence(f"{what} fails"), self._limited(session, what):
            statement = _over(view, self._checked(session, query))
            rows(session).createOrReplaceTempView(view)
            try:
                return len(session.sql(statement).collect()) > 0
            finally:
                session.catalog.dropTempView(view)

    def _checked(self, session: "SparkSession", query: str) -> str:
        """Return the text that Spark receives."""
        if query not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[query] = checked(session, query, self._bounds.may_read)
        return self._known[query]

    @contextmanager
    def _limited(self, session: "SparkSession", what: str) -> Iterator[None]:
        """Cancel what this thread runs in Spark once it takes too long."""
        from harness.platform.spark.classic_jvm import tagging

        seconds, (add, interrupt, remove) = self._bounds.seconds, tagging(session)
        tag, is_over, is_late = f"heartbeat-{uuid.uuid4()}", threading.Event(), threading.Event()

        def cancel_when_late() -> None:
            if is_over.wait(seconds):
                return
            is_late.set()
            interrupt(tag)
            # A query is several jobs, and one that begins later is to end, too.
            while not is_over.wait(_SECONDS_BETWEEN_CANCELS):
                interrupt(tag)

        add(tag)
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
            remove(tag)


def checked(session: "SparkSession", query: str, may_read: Collection[str] = ()) -> str:
    """Return the text of a query that Spark may run.

    Raises:
        ProbeFailedError: It is not one SELECT, or reads or calls what it may not.
        PySparkException: Spark cannot parse it.
    """
    from sqlglot.errors import SqlglotError

    from harness.sense.preprocess.parser import parsed, tokens_of

    try:
        found = parsed(query, tokens_of(query))
    except (SqlglotError, RecursionError) as error:
        reason = f"it cannot be parsed: {first_line(error, repr(error))}"
        raise ProbeFailedError(f"its preprocess_query fails: {reason}") from error
    if found is None:
        raise ProbeFailedError("its preprocess_query fails: it is not a single SELECT")
    phrases = [*unread(found.use, may_read), *uncalled(found.use)]
    phrases += overlooked(session, found)
    if phrases:
        raise ProbeFailedError(f"its preprocess_query {phrases[0]}")
    return found.text


def overlooked(session: "SparkSession", found: "ParsedQuery") -> list[str]:
    """Return what Spark reads in a query beyond what the parser has found, as phrases.

    The new rows are named as a view that does not exist: Spark parses the text, and no more.
    """
    view = f"heartbeat_{uuid.uuid4().hex}"
    plan = session.sql(f"explain extended {_over(view, found.text)}").collect()[0][0]
    read = {name_of(each.split(", ")) for each in _NAMED.findall(plan)}
    own = {(view,), (NEW_DATA,), *((each,) for each in found.ctes)}
    known = own | found.use.relations | found.use.row_makers
    if (view,) in read <= known and not _NAMED_OTHERWISE.search(plan):
        return []
    return ["names what it reads in a way that cannot be checked"]


#: How Spark's plans name what is read.
_NAMED = re.compile(r"Unresolved(?:Relation|TableValuedFunction) \[(.*?)\]")
_NAMED_OTHERWISE = re.compile(
    r"ScriptTransformation|Unresolved(?!Relation|TableValuedFunction|InlineTable)\w*?"
    r"(?:Relation|Table|View|Identifier|Procedure)"
)


def _over(view: str, query: str) -> str:
    """Return a statement that tries a query; as a subquery nothing but a query is admitted."""
    rows = f"with {NEW_DATA} as (select * from `{view}`)"
    return f"{rows} select 1 from (\n{query}\n) limit 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the rows show of a change."""

    is_change: bool
    #: The largest value of ``upstream_key`` after it, where that is kept.
    upstream_value: str | None


def evaluate(questions: Questions, upstream: Upstream, rows: Rows, *, is_baseline: bool) -> Answer:
    """Evaluate the new rows as the upstream's control row requires.

    Args:
        questions: Evaluates rows.
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
    from harness.platform.spark.errors import SPARK_ERRORS

    try:
        yield
    except SPARK_ERRORS as error:
        # What stands around the message may hold an address.
        reason = first_line(masked(message_of(error)), "no reason was given").strip().rstrip(".")
        raise ProbeFailedError(f"{what}: {reason}") from None
