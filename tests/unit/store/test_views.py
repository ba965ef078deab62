"""What a person is told when Spark cannot read a table."""

import pytest
from pyspark.errors import AnalysisException

from harness.errors import StateError
from harness.platform.sql.session import SessionSql
from harness.platform.sql_names import SchemaName
from harness.store.views import Views


class BrokenSession:
    """Fails at every table."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def sql(self, statement: str) -> object:
        raise self._error


def read(error: Exception) -> None:
    session = BrokenSession(error)
    views = Views(SessionSql(lambda: session), SchemaName("heartbeat"), keeps=True)  # type: ignore[arg-type, return-value]
    views.rows("trigger_set")


def test_a_table_that_spark_cannot_read_is_told_with_the_way_out() -> None:
    with pytest.raises(StateError) as reported:
        read(AnalysisException("[DELTA_LOG_GONE] a file is gone.\nat org.apache"))
    assert str(reported.value) == (
        "heartbeat.trigger_set cannot be read: [DELTA_LOG_GONE] a file is gone; "
        "`python -m harness doctor` shows what to do"
    )


def test_a_jvm_that_has_died_is_not_taken_for_a_table_that_cannot_be_read() -> None:
    with pytest.raises(ConnectionRefusedError):
        read(ConnectionRefusedError(111, "Connection refused"))
