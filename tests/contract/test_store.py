"""What a store promises: the local one, the one over the session's catalog, and the tests' fake."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from harness.errors import StateError
from harness.events.event import EventRow, Operation, TableFormat
from harness.platform.sql.session import SessionSql
from harness.platform.sql_names import SchemaName
from harness.store.catalog import CatalogStore
from harness.store.local import LocalStore
from harness.store.public_tables import (
    CONTROL_TABLE,
    PUBLIC_TABLES,
    SENSORS_TABLE,
    PublicTable,
    wanted_rows,
)
from harness.store.rows import (
    Consumed,
    FencingStore,
    FencingToken,
    Ledger,
    LedgerRow,
    ProbeOutcome,
    ProbeRow,
    RecentEvents,
    Run,
    RunStatus,
    Store,
)
from tests.support.copied import PROJECT
from tests.support.leases import StampedLocalStore
from tests.support.local_rows import frame_of_rows
from tests.support.memory_store import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2026, 3, 1, 8, 0, 0, 123456, tzinfo=UTC)

_COLUMNS = {
    Ledger.EVENTS: """tick_number bigint, event_ts bigint, event_id string, upstream_id string,
        `table` string, `partition` array<string>, snapshot_id string, snapshot_ts bigint,
        prev_snapshot_id string, table_format string, operation_type string,
        tags map<string,string>, change_id string""",
    Ledger.PROBES: """tick_number bigint, recorded_at timestamp, upstream_id string,
        outcome string, reason string, failing_since timestamp, position string,
        upstream_value string, latest_event_tick bigint, latest_event_at timestamp,
        recent_events array<struct<tick_number:bigint,event_at:timestamp,event_count:bigint>>""",
    Ledger.RUNS: """tick_number bigint, step_number bigint, recorded_at timestamp, job_id bigint,
        job_name string, intent_id string, attempt int, token string, run_id bigint,
        run_status string, reported_by string, decided_tick bigint, decided_at timestamp,
        started_at timestamp, ended_at timestamp, life_cycle_state string, result_state string,
        state string, termination_code string, message string, run_page_url string,
        consumed array<struct<upstream_id:string,from_tick:bigint,through_tick:bigint>>,
        event_count bigint, event_ids array<string>, parameters string""",
}


@pytest.fixture(scope="module")
def schema(spark: "SparkSession") -> str:
    spark.sql("create database if not exists store_contract")
    for ledger, columns in _COLUMNS.items():
        spark.sql(f"create table store_contract.{ledger} ({columns}) using delta")
    return "store_contract"


@pytest.fixture(params=["memory", "local", "catalog"])
def store(request: pytest.FixtureRequest) -> FencingStore:
    if request.param == "memory":
        return MemoryStore(tables=tuple(_COLUMNS))
    spark: SparkSession = request.getfixturevalue("spark")
    schema: str = request.getfixturevalue("schema")
    if request.param == "local":
        home: Path = request.getfixturevalue("spark_home")
        return StampedLocalStore(home / "warehouse", schema)
    return CatalogStore(SessionSql(lambda: spark), SchemaName(schema))


def _event(tick_number: int, name: str) -> EventRow:
    return EventRow(
        tick_number=tick_number,
        event_ts=1,
        event_id=name,
        upstream_id="delta_table:a:1",
        table="a",
        partition=('"x"', "1"),
        snapshot_id="7",
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        tags={"operation": "WRITE", "it's": "quoted"},
        change_id=name,
    )


def test_what_is_appended_is_read_back_with_lists_and_maps(
    store: Store, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    store.append(Ledger.EVENTS, [_event(1, name)])

    (row,) = store.read(Ledger.EVENTS, where=[("event_id", "=", name)])

    assert row["partition"] == ['"x"', "1"]
    assert row["tags"] == {"operation": "WRITE", "it's": "quoted"}
    assert row["snapshot_ts"] is None


def test_every_condition_must_hold(store: Store, request: pytest.FixtureRequest) -> None:
    name = request.node.name
    store.append(Ledger.EVENTS, [_event(number, f"{name}{number}") for number in range(1, 5)])
    mine = ("event_id", "in", [f"{name}{number}" for number in range(1, 5)])

    rows = store.read(
        Ledger.EVENTS, where=[mine, ("tick_number", ">", 1), ("tick_number", "<=", 3)]
    )

    assert sorted(str(row["event_id"]) for row in rows) == [f"{name}2", f"{name}3"]


def test_text_contains_other_text_in_any_case(store: Store, request: pytest.FixtureRequest) -> None:
    name = request.node.name
    store.append(Ledger.EVENTS, [_event(1, f"{name} Lake.FLIGHTS"), _event(1, f"{name} planes")])

    rows = store.read(
        Ledger.EVENTS, where=[("event_id", "contains", name), ("event_id", "contains", "Flight")]
    )

    assert [row["event_id"] for row in rows] == [f"{name} Lake.FLIGHTS"]


@pytest.mark.parametrize(
    "text",
    [
        "it's",
        "''",
        '"',
        "`a`",
        "\\",
        "\\'",
        "a\nb",
        "100 %_",
        "$1 ? :a",
        "--",
        "/*",
        "ünï 💚",
        "\t",
    ],
)
def test_text_of_any_characters_is_found_and_is_nothing_but_text(
    text: str, store: Store, request: pytest.FixtureRequest
) -> None:
    wanted, other = f"{request.node.name} {text}", f"{request.node.name} other"
    store.append(Ledger.EVENTS, [_event(1, wanted), _event(1, other)])

    for condition in (("=", wanted), ("in", [wanted]), ("contains", wanted.upper())):
        rows = store.read(Ledger.EVENTS, where=[("event_id", *condition)])
        assert [row["event_id"] for row in rows] == [wanted]


def test_rows_on_a_disk_come_by_commit_the_newest_first(tmp_path: Path) -> None:
    for number in range(20):
        rows = pa.table({"number": [2 * number, 2 * number + 1]})
        write_deltalake(tmp_path / "s.db" / "numbers", rows, mode="append")

    rows = LocalStore(tmp_path, "s").read("numbers", where=[("number", ">", 3)])

    commits = [[2 * number, 2 * number + 1] for number in reversed(range(2, 20))]
    assert [row["number"] for row in rows] == [each for commit in commits for each in commit]


def test_reading_on_a_disk_imports_no_pandas(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "s.db" / "t", pa.table({"at": [AT], "names": [["a"]]}))
    script = (
        "import sys; from pathlib import Path; from harness.store.local import LocalStore\n"
        "rows = LocalStore(Path(sys.argv[1]), 's').read('t', where=[('at', '<=', None)])\n"
        "rows += LocalStore(Path(sys.argv[1]), 's').read('t')\n"
        "print(rows[0]['at'].isoformat(), rows[0]['names'], 'pandas' in sys.modules)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout == f"{AT.isoformat()} ['a'] False\n", ran.stderr


def test_a_condition_may_name_a_column_that_is_not_selected(
    store: Store, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    store.append(Ledger.EVENTS, [_event(3, name)])

    rows = store.read(
        Ledger.EVENTS, where=[("event_id", "=", name)], columns=["tick_number", "tags"]
    )

    assert rows == [{"tick_number": 3, "tags": {"operation": "WRITE", "it's": "quoted"}}]


def test_ids_above_what_a_double_holds_are_exact(
    store: Store, request: pytest.FixtureRequest
) -> None:
    intent = request.node.name
    store.append(
        Ledger.RUNS,
        [
            Run(
                tick_number=1,
                step_number=1,
                recorded_at=AT,
                job_id=2**53 + 1,
                job_name="a",
                intent_id=intent,
                attempt=1,
                token="t",
                run_id=2**63 - 1,
                run_status=RunStatus.STARTED,
                reported_by="answer",
                decided_tick=1,
                decided_at=AT,
                consumed=(Consumed(upstream_id="u", from_tick=-1, through_tick=1),),
                event_count=1,
                event_ids=("e",),
                parameters="{}",
            )
        ],
    )

    (row,) = store.read(Ledger.RUNS, where=[("intent_id", "=", intent)])

    assert (row["job_id"], row["run_id"]) == (2**53 + 1, 2**63 - 1)
    assert row["run_status"] == "STARTED"
    assert row["consumed"] == [{"upstream_id": "u", "from_tick": -1, "through_tick": 1}]


def test_instants_keep_their_zone_and_their_microseconds(
    store: Store, request: pytest.FixtureRequest
) -> None:
    upstream = request.node.name
    store.append(
        Ledger.PROBES,
        [
            ProbeRow(
                tick_number=1,
                recorded_at=AT,
                upstream_id=upstream,
                outcome=ProbeOutcome.FOUND,
                reason=None,
                failing_since=None,
                position="{}",
                upstream_value=None,
                latest_event_tick=1,
                latest_event_at=AT,
                recent_events=(RecentEvents(tick_number=1, event_at=AT, event_count=2),),
            )
        ],
    )

    (row,) = store.read(Ledger.PROBES, where=[("upstream_id", "=", upstream)])

    recorded_at = row["recorded_at"]
    assert isinstance(recorded_at, datetime)
    assert recorded_at.astimezone(UTC) == AT


def test_no_rows_make_no_commit(store: Store) -> None:
    before = store.fingerprint(Ledger.EVENTS)
    store.append(Ledger.EVENTS, [])
    assert store.fingerprint(Ledger.EVENTS) == before


def test_a_fingerprint_changes_with_every_commit(
    store: Store, request: pytest.FixtureRequest
) -> None:
    before = store.fingerprint(Ledger.EVENTS)
    store.append(Ledger.EVENTS, [_event(1, request.node.name)])
    assert store.fingerprint(Ledger.EVENTS) != before


def test_a_table_that_is_not_there_has_no_rows_and_cannot_be_appended_to(store: Store) -> None:
    assert store.read("ledger_ticks") == []
    assert not store.exists("ledger_ticks")
    assert store.fingerprint("ledger_ticks") is None
    with pytest.raises(StateError, match="ledger_decisions cannot be written"):
        store.append(Ledger.DECISIONS, [_event(1, "x")])


_PRODUCTS = PublicTable(
    name="products",
    model="int_products",
    key=("name", "job"),
    columns=("name", "job", "assets", "at", "note"),
)
_ROW = {"name": "a", "job": "1", "assets": ["x", None], "at": AT, "note": None}


@pytest.fixture(params=["local", "catalog"])
def publish(
    request: pytest.FixtureRequest, spark: "SparkSession", schema: str, spark_home: Path
) -> Iterator[Callable[[Sequence[dict[str, object]]], list[dict[str, object]]]]:
    """Give a public table the rows of its model, and return what it then has."""
    local = LocalStore(spark_home / "warehouse", schema)
    catalog = CatalogStore(SessionSql(lambda: spark), SchemaName(schema))
    columns = "name string, job string, assets array<string>, at timestamp, note string"
    spark.sql(f"create table {schema}.products ({columns}) using delta")

    def published(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
        if request.param == "local":
            local.replace(_PRODUCTS, rows)
        else:
            values = [tuple(row[name] for name in _PRODUCTS.columns) for row in rows]
            # A model may have more columns than its table.
            model = frame_of_rows(spark, values, columns.replace("name", "`name`", 1))
            model.selectExpr("*", "1 as other").createOrReplaceTempView("wanted")
            spark.sql(f"create or replace table {schema}.int_products using delta as table wanted")
            catalog.merge(_PRODUCTS)
        return sorted(local.read("products"), key=lambda row: str(row["name"]))

    yield published
    spark.sql(f"drop table {schema}.products")


def test_publishing_leaves_the_rows_of_the_model_and_no_others(
    publish: Callable[[Sequence[dict[str, object]]], list[dict[str, object]]],
) -> None:
    histories = [
        [_ROW, {**_ROW, "name": "b", "assets": []}],
        # A cell that had a value, and one that has one now; a row that is gone, and one that came.
        [{**_ROW, "note": "half", "at": None}, {**_ROW, "name": "c"}],
        [{**_ROW, "note": None, "assets": None}, {**_ROW, "name": "c", "assets": ["x"]}],
        # Nothing changes.
        [{**_ROW, "note": None, "assets": None}, {**_ROW, "name": "c", "assets": ["x"]}],
        [],
    ]
    for rows in histories:
        assert publish(rows) == rows


def test_publishing_what_is_published_already_makes_no_commit_on_a_disk(
    schema: str, spark: "SparkSession", spark_home: Path
) -> None:
    store = LocalStore(spark_home / "warehouse", schema)
    spark.sql(f"create table {schema}.products (name string, job string, note string) using delta")
    table = PublicTable(
        name="products", model="", key=("name", "job"), columns=("name", "job", "note")
    )
    rows = [{"name": "a", "job": "1", "note": None}]
    store.replace(table, rows)
    before = store.fingerprint("products")
    store.replace(table, rows)
    assert store.fingerprint("products") == before
    spark.sql(f"drop table {schema}.products")


def test_a_table_that_is_filled_has_the_rows_given_and_no_others(
    schema: str, spark: "SparkSession", spark_home: Path
) -> None:
    store = LocalStore(spark_home / "warehouse", schema)
    columns = "id string, slots array<bigint>, opened array<timestamp>, note string"
    spark.sql(f"create table {schema}.due ({columns}) using delta")
    row = {"id": "a", "slots": [1, 2], "opened": [AT], "note": None}
    for rows in ([row, row], [row | {"slots": [], "opened": None, "note": "x"}], []):
        # A model may have more columns, in another order.
        store.fill("due", [{"other": 1, **dict(reversed(each.items()))} for each in rows])
        assert store.read("due") == rows
    with pytest.raises(StateError, match="The table due cannot be written"):
        store.fill("due", [{"id": "a"}])
    spark.sql(f"drop table {schema}.due")


def test_the_public_tables_have_the_columns_that_are_merged() -> None:
    for table in PUBLIC_TABLES:
        text = (PROJECT / "models" / "publish" / f"{table.name}.yml").read_text()
        columns = yaml.safe_load(text)["models"][0]["columns"]
        assert tuple(each["name"] for each in columns) == table.columns


def test_one_reading_has_the_rows_of_both_public_tables() -> None:
    read: list[str] = []

    def rows(model: str) -> list[dict[str, object]]:
        read.append(model)
        return [{"sensor_id": "orders_1", "control_row": {"sensor_id": "orders"}}]

    wanted = wanted_rows(PUBLIC_TABLES, rows)
    assert read == [SENSORS_TABLE.model]
    assert [row["sensor_id"] for row in wanted["sensors"]] == ["orders_1"]
    assert wanted["heartbeat_control"] == [{"sensor_id": "orders"}]


def test_a_public_table_that_is_not_there_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="The table heartbeat_control cannot be written"):
        LocalStore(tmp_path, "nothing").replace(CONTROL_TABLE, [])


def _stamp(request: pytest.FixtureRequest, version: int) -> FencingToken:
    return FencingToken(application=request.node.name, version=version)


def _names(store: Store, prefix: str) -> list[str]:
    rows = store.read(Ledger.EVENTS)
    return sorted(str(row["event_id"]) for row in rows if str(row["event_id"]).startswith(prefix))


def test_an_append_whose_stamp_is_not_above_the_last_one_leaves_no_row(
    store: FencingStore, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    store.append(Ledger.EVENTS, [_event(1, f"{name}-first")], _stamp(request, 5))
    store.append(Ledger.EVENTS, [_event(1, f"{name}-same")], _stamp(request, 5))
    store.append(Ledger.EVENTS, [_event(1, f"{name}-lower")], _stamp(request, 4))
    store.append(Ledger.EVENTS, [_event(1, f"{name}-higher")], _stamp(request, 6))

    assert _names(store, name) == [f"{name}-first", f"{name}-higher"]


def test_a_fence_keeps_out_whatever_is_not_above_it_and_adds_no_row(
    store: FencingStore, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    before = len(store.read(Ledger.RUNS))
    store.fence(_stamp(request, 2**33))
    store.append(Ledger.EVENTS, [_event(1, f"{name}-zombie")], _stamp(request, 2**32 + 7))
    store.append(Ledger.EVENTS, [_event(1, f"{name}-holder")], _stamp(request, 2**33 + 1))

    assert _names(store, name) == [f"{name}-holder"]
    assert len(store.read(Ledger.RUNS)) == before


class _Forgetful(CatalogStore):
    """On an engine that has no idempotent writes."""

    def _commit(
        self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: FencingToken | None
    ) -> None:
        super()._commit(ledger, rows, None)


def test_a_ledger_that_keeps_no_stamps_is_not_written_to(
    spark: "SparkSession", schema: str, request: pytest.FixtureRequest
) -> None:
    store = _Forgetful(SessionSql(lambda: spark), SchemaName(schema))
    with pytest.raises(StateError, match="does not keep the stamps of its writers"):
        store.fence(_stamp(request, 1))
