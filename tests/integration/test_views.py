"""Reading views through Delta Kernel, over tables that others write to."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.connect.client import SparkConnectClient as Client
from pyspark.sql.connect.session import SparkSession as RemoteSession

from harness.config.load import load_settings
from harness.context import Context
from harness.platform.clock import RealClock
from harness.platform.spark.engine import THROUGH_KERNEL, forget_session, session_beside
from harness.platform.sql.session import SessionSql
from harness.platform.sql_names import SchemaName
from harness.store.views import Views
from tests.support.services.strict import strict_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.services.connect import Endpoint

SCHEMA = "kept_views"


@pytest.fixture
def lake(spark: "SparkSession", spark_home: Path) -> Iterator[Path]:
    """A Delta table of two columns, and a view of it below another view."""
    spark.sql(f"create schema {SCHEMA}")
    spark.sql(f"create table {SCHEMA}.lake (day int, place string) using delta")
    spark.sql(f"create view {SCHEMA}.inner_view as select day, place from {SCHEMA}.lake")
    spark.sql(
        f"create view {SCHEMA}.outer_view as select max(day) as day, count(*) as n "
        f"from {SCHEMA}.inner_view where day > 1"
    )
    yield spark_home / "warehouse" / f"{SCHEMA}.db" / "lake"
    spark.sql(f"drop schema {SCHEMA} cascade")


@pytest.fixture(params=["of the process", "of an engine"])
def reader(
    request: pytest.FixtureRequest, spark: "SparkSession", spark_endpoint: "Endpoint"
) -> Iterator["SparkSession"]:
    """A session that reads through Delta Kernel, beside one of each kind."""
    session: Any = spark
    if request.param == "of an engine":
        session = RemoteSession.builder.remote(spark_endpoint.url).create()
    reader = session_beside(session, THROUGH_KERNEL)
    assert reader is not session
    yield reader
    if session is not spark:
        forget_session(reader)
        forget_session(session)


@pytest.fixture
def views(reader: "SparkSession") -> Views:
    """Views that are read through Delta Kernel, and through nothing else."""
    return Views(SessionSql(lambda: reader), SchemaName(SCHEMA))


def append(lake: Path, *days: int) -> None:
    rows = pa.table({"day": pa.array(days, pa.int32()), "place": ["a"] * len(days)})
    write_deltalake(lake, rows, mode="append")


def test_a_session_has_no_request_left_for_the_end_of_the_process(
    spark: "SparkSession", spark_endpoint: "Endpoint", monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server may have ended by then, and PySpark tries to reach it for ten minutes.
    at_exit: list[object] = []
    monkeypatch.setattr("atexit.register", at_exit.append)
    opened = RemoteSession.builder.remote(spark_endpoint.url).create()
    monkeypatch.setattr("atexit.unregister", at_exit.remove)
    beside = session_beside(opened, THROUGH_KERNEL)  # type: ignore[arg-type]
    strict = strict_session(spark_endpoint, "prod-eu")
    # What gRPC has registered needs no server.
    of_clients = [each for each in at_exit if isinstance(getattr(each, "__self__", None), Client)]
    assert of_clients == [opened.client._cleanup_ml_cache]
    assert strict.version == opened.version
    forget_session(beside)
    forget_session(opened)  # type: ignore[arg-type]


def test_tables_are_scanned_by_delta_kernel_in_a_reader_alone(
    reader: "SparkSession", spark: "SparkSession", lake: Path
) -> None:
    append(lake, 1, 2)
    statement = f"explain select * from {SCHEMA}.outer_view"
    (of_reader,), (own,) = reader.sql(statement).collect(), spark.sql(statement).collect()
    assert "BatchScan" in of_reader.plan
    assert "BatchScan" not in own.plan


def test_a_context_reads_its_models_in_such_a_reader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark: "SparkSession", lake: Path
) -> None:
    opened: list[tuple[object, object]] = []

    def observed(session: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
        opened.append((session, settings))
        return session_beside(session, settings)

    monkeypatch.setattr("harness.platform.spark.engine.session_beside", observed)
    (tmp_path / "heartbeat.yml").touch()
    settings = load_settings(tmp_path, {"HEARTBEAT_HOME": str(tmp_path / "state")})
    context = Context(settings, {"HEARTBEAT_SCHEMA": SCHEMA}, RealClock())
    vars(context)["session"] = spark
    append(lake, 1, 2)
    assert context.rows("outer_view") == context.rows("outer_view") == [{"day": 2, "n": 1}]
    assert opened == [(spark, THROUGH_KERNEL)]


@pytest.mark.parametrize("reader", ["of an engine"], indirect=True)
def test_an_engine_analyses_a_model_once_for_each_reading(
    monkeypatch: pytest.MonkeyPatch, reader: Any, views: Views, lake: Path
) -> None:
    client = reader.client
    with monkeypatch.context() as patch:
        for request in ("execute_command", "_analyze"):
            patch.setattr(client, request, None)
        assert views.rows("outer_view") == [{"day": None, "n": 0}]


def test_each_reading_shows_what_another_writer_has_appended_since(
    views: Views, lake: Path
) -> None:
    assert views.rows("outer_view") == [{"day": None, "n": 0}]
    append(lake, 1, 2)
    assert views.rows("outer_view") == [{"day": 2, "n": 1}]
    append(lake, 3)
    assert views.rows("outer_view") == [{"day": 3, "n": 2}]


def test_a_view_can_be_read_when_its_files_were_compacted_and_removed(
    views: Views, lake: Path
) -> None:
    for day in (2, 3, 4):
        append(lake, day)
    assert views.rows("outer_view") == [{"day": 4, "n": 3}]
    table = DeltaTable(lake)
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table.create_checkpoint()
    append(lake, 5)
    assert views.rows("outer_view") == [{"day": 5, "n": 4}]


def test_a_view_that_was_created_again_is_read_again_at_once(
    views: Views, spark: "SparkSession", lake: Path
) -> None:
    append(lake, 1, 2)
    assert views.rows("inner_view") == [{"day": 1, "place": "a"}, {"day": 2, "place": "a"}]
    spark.sql(f"create or replace view {SCHEMA}.inner_view as select 7 as day")
    assert views.rows("inner_view") == [{"day": 7}]


def test_a_reading_shows_what_spark_has_changed_and_deleted(
    views: Views, spark: "SparkSession", lake: Path
) -> None:
    append(lake, 2, 3, 4)
    spark.sql(f"delete from {SCHEMA}.lake where day = 3")
    spark.sql(f"update {SCHEMA}.lake set day = 9 where day = 4")
    spark.sql(
        f"merge into {SCHEMA}.lake using (select 2 as day) as gone on lake.day = gone.day "
        "when matched then delete when not matched then insert (day) values (0)"
    )
    assert views.rows("outer_view") == [{"day": 9, "n": 1}]
    spark.sql(
        f"alter table {SCHEMA}.lake set tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"insert into {SCHEMA}.lake values (5, 'b'), (6, 'c')")
    spark.sql(f"delete from {SCHEMA}.lake where day = 5")
    assert views.rows("outer_view") == [{"day": 9, "n": 2}]
    spark.sql(f"truncate table {SCHEMA}.lake")
    assert views.rows("outer_view") == [{"day": None, "n": 0}]


def test_every_type_of_the_ledgers_is_read_as_by_deltas_own_reader(
    views: Views, spark: "SparkSession", lake: Path
) -> None:
    append(lake, 2)
    spark.sql(
        f"create table {SCHEMA}.types using delta partitioned by (part) as select"
        " timestamp'2026-03-01 23:30:00.123456' as at, date'2026-03-01' as day, 1.50BD as exact,"
        " 0.1D as near, true as yes, 9007199254740993L as big, cast(null as string) as nothing,"
        " array(named_struct('from_tick', 1L, 'ids', array('a', null))) as consumed,"
        " map('a', 1) as by_name, cast('x' as binary) as bytes, 'ü/=%' as part"
    )
    spark.sql(f"create view {SCHEMA}.of_types as select * from {SCHEMA}.types")
    own = Views(SessionSql(lambda: spark), SchemaName(SCHEMA))
    assert views.rows("of_types") == own.rows("of_types")
    assert views.rows("of_types")[0]["part"] == "ü/=%"


def test_columns_that_were_added_are_null_in_older_files(
    views: Views, spark: "SparkSession", lake: Path
) -> None:
    append(lake, 1)
    spark.sql(f"alter table {SCHEMA}.lake add column more bigint")
    spark.sql(f"insert into {SCHEMA}.lake values (2, 'b', 3)")
    spark.sql(f"create view {SCHEMA}.wide as select day, more from {SCHEMA}.lake order by day")
    assert views.rows("wide") == [{"day": 1, "more": None}, {"day": 2, "more": 3}]
