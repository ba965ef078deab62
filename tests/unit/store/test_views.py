"""What is reported to a person when Spark cannot read a table."""

import pytest
from pyspark.errors import AnalysisException

from harness.errors import StateError
from harness.platform.sql.port import Row, SqlError
from harness.platform.sql.session import SessionSql
from harness.platform.sql_names import SchemaName
from harness.store.views import Views


class BrokenSession:
    """Fails at every table."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def table(self, name: str) -> object:
        raise self._error


def read(error: Exception) -> None:
    session = BrokenSession(error)
    views = Views(SessionSql(lambda: session), SchemaName("heartbeat"))  # type: ignore[arg-type, return-value]
    views.rows("trigger_set")


def test_a_table_that_spark_cannot_read_is_reported_with_the_remedy() -> None:
    with pytest.raises(StateError) as reported:
        read(AnalysisException("[DELTA_LOG_GONE] a file is gone.\nat org.apache"))
    assert str(reported.value) == (
        "heartbeat.trigger_set cannot be read: [DELTA_LOG_GONE] a file is gone; "
        "`python -m harness doctor` shows what to do"
    )


def test_a_jvm_that_has_died_is_not_taken_for_a_table_that_cannot_be_read() -> None:
    with pytest.raises(ConnectionRefusedError):
        read(ConnectionRefusedError(111, "Connection refused"))


class Answering:
    """Answers or fails, and counts."""

    def __init__(self, *rows: Row, fails: bool = False) -> None:
        self.rows, self.fails, self.asked = list(rows), fails, 0

    def read(self, table: str) -> list[Row]:
        self.asked += 1
        if self.fails:
            raise SqlError("no such feature")
        return self.rows


def test_what_cannot_be_read_quickly_is_read_slowly_from_then_on_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow, quick = Answering({"n": 1}), Answering(fails=True)
    views = Views(slow, SchemaName("heartbeat"), quick=quick)  # type: ignore[arg-type]
    assert [views.rows("trigger_set") for _ in range(3)] == [[{"n": 1}]] * 3
    assert (quick.asked, slow.asked) == (1, 3)
    assert [record.message for record in caplog.records] == [
        "models are read slowly from now on: Delta Kernel cannot read them: no such feature"
    ]


def test_a_table_that_nothing_can_read_leaves_the_quick_way_as_it_was() -> None:
    slow, quick = Answering({"n": 1}, fails=True), Answering({"n": 1}, fails=True)
    views = Views(slow, SchemaName("heartbeat"), quick=quick)  # type: ignore[arg-type]
    with pytest.raises(StateError):
        views.rows("trigger_set")
    quick.fails = False
    assert views.rows("trigger_set") == [{"n": 1}]
    assert slow.asked == 1


def test_a_reader_whose_quick_way_another_thread_gives_up_reads_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class GivenUpMeanwhile(Answering):
        def read(self, table: str) -> list[Row]:
            views._quick = None
            return super().read(table)

    slow = Answering({"n": 1})
    views = Views(slow, SchemaName("heartbeat"), quick=GivenUpMeanwhile(fails=True))  # type: ignore[arg-type]
    assert views.rows("trigger_set") == [{"n": 1}]
    assert caplog.records == []
