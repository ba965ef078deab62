"""The inbox and the state files of a workspace: tables, over a session and over a SQL warehouse."""

import base64
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import ConfigurationError, StateError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.platform.sql.port import Sql
from harness.platform.sql.session import SessionSql
from harness.platform.sql.warehouse import WarehousePlace, WarehouseSql
from harness.platform.sql_names import SchemaName, literal
from harness.record.batch_inbox import receive_batches, remove_batches, send_batch
from harness.store.catalog_files import CatalogFiles, delete_item
from harness.store.catalog_inbox import CatalogInbox
from harness.store.inbox import FolderInbox, Inbox, Message, MessageKind, bind, receive, remove
from harness.store.quarantine import Quarantine, quarantined
from harness.store.rows import Consumed, RunStatus
from harness.store.state_dir import StateDir
from tests.support.fake_clock import FakeClock
from tests.support.ledgers import run
from tests.support.services.warehouse.server import WAREHOUSE_PATH, Denied, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Both run the same statements, and test_sql_port compares what they return.
IN_SPARK = pytest.param("session", marks=pytest.mark.long)
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
NAME = "workspace_state"


@contextmanager
def opened(kind: str, request: pytest.FixtureRequest) -> Iterator[Sql]:
    if kind == "session":
        spark: SparkSession = request.getfixturevalue("spark")
        yield SessionSql(lambda: spark)
        return
    served: Warehouse = request.getfixturevalue("served_warehouse")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in served.variables(by_oauth=True).items():
            patch.setenv(name, value)
        patch.delenv("DATABRICKS_TOKEN", raising=False)
        sql = WarehouseSql(WarehousePlace(http_path=WAREHOUSE_PATH, catalog="prod-eu"))
        yield sql
        sql.close()
    served.recover()


def emptied(sql: Sql) -> SchemaName:
    """Return the schema, with none of the tables in it."""
    catalog = "prod-eu" if isinstance(sql, WarehouseSql) else "spark_catalog"
    schema = SchemaName(name=NAME, catalog=catalog)
    sql.run(f"create schema if not exists {schema.in_sql}")
    for table in ("inbox", "state_files"):
        sql.run(f"drop table if exists {schema.table(table)}")
    return schema


def inbox_of(sql: Sql, folder: Path) -> CatalogInbox:
    inbox = CatalogInbox(sql, emptied(sql), lambda: folder, FakeClock(NOON))
    inbox.create()
    inbox.create()
    return inbox


@pytest.fixture(params=[IN_SPARK, "warehouse"])
def sql(request: pytest.FixtureRequest) -> Iterator[Sql]:
    with opened(request.param, request) as sql:
        yield sql


@pytest.fixture
def schema(sql: Sql) -> SchemaName:
    return emptied(sql)


@pytest.fixture
def inbox(sql: Sql, schema: SchemaName, tmp_path: Path) -> CatalogInbox:
    return inbox_of(sql, tmp_path / "inbox")


@pytest.fixture(params=["folder", IN_SPARK, "warehouse"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Inbox]:
    """The inbox of the local target, and that of a workspace."""
    if request.param == "folder":
        yield FolderInbox(tmp_path / "inbox")
        return
    with opened(request.param, request) as sql:
        yield inbox_of(sql, tmp_path / "inbox")


def message(kind: MessageKind = MessageKind.COMPLETE, **fields: object) -> Message:
    return Message(kind=kind, **{"job_id": 7, "sent_at": NOON, **fields})  # type: ignore[arg-type]


# The inbox.


def test_a_message_comes_out_as_it_was_left_and_is_gone_once_it_is_taken_out(
    either: Inbox, tmp_path: Path
) -> None:
    left = [
        message(run_id=2**53 + 1, reason="it's \\ done\n`now`", job_name="daily"),
        message(
            MessageKind.PROCESSED,
            job_id=8,
            sent_at=NOON + timedelta(seconds=1),
            taken=Consumed(upstream_id="u", from_tick=-1, through_tick=4),
        ),
    ]
    for each in reversed(left):
        either.send(each)
    assert [one.job_id for one in either.peek()] == [7, 8]
    either.collect()
    found = receive(tmp_path / "inbox")
    assert [_without_path(each) for each in found] == left
    remove(found[0])
    either.settle()
    either.collect()
    assert [each.job_id for each in receive(tmp_path / "inbox")] == [8]


def test_a_message_that_no_tick_could_read_is_refused_where_it_is_left(either: Inbox) -> None:
    with pytest.raises(ConfigurationError, match="cannot be left: run_id has to be"):
        either.send(message(run_id=-1))
    assert either.peek() == []


def test_events_come_out_as_they_were_left(either: Inbox, tmp_path: Path) -> None:
    event = ChangeEvent(
        table="lake.it's",
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        snapshot_id="1",
        tags={"a\\b": "ü\n"},
    )
    send_batch(either, [event], at=NOON)
    either.collect()
    (batch,) = receive_batches(tmp_path / "inbox", at=NOON)
    assert batch.events == (event,)
    remove_batches([batch])
    either.settle()
    either.collect()
    assert receive_batches(tmp_path / "inbox", at=NOON) == []


def test_one_insert_of_anybody_is_a_message(
    inbox: CatalogInbox, sql: Sql, schema: SchemaName, tmp_path: Path
) -> None:
    table = schema.table("inbox")
    sql.run(f"insert into {table} (kind, job_id, run_id) values ('complete', 7, 9)")
    sql.run(
        f"insert into {table} (kind, job_id, reason, content)"
        """ values ('retry', 7, 'why', '{"attempt": 2, "intent_id": "i"}')"""
    )
    event = {"table": "lake.t", "table_format": "DELTA", "snapshot_id": "1"}
    sql.run(f"insert into {table} (kind, content) values ('events', {literal(json.dumps(event))})")
    inbox.collect()
    complete, retry = receive(tmp_path / "inbox")
    assert (complete.kind, complete.run_id) == (MessageKind.COMPLETE, 9)
    assert abs(complete.sent_at - datetime.now(UTC)) < timedelta(minutes=10)
    assert (retry.kind, retry.attempt, retry.intent_id, retry.reason) == ("retry", 2, "i", "why")
    (batch,) = receive_batches(tmp_path / "inbox", at=datetime.now(UTC))
    assert batch.events[0].table == "lake.t"


def test_a_row_that_was_inserted_twice_because_the_answer_was_lost_is_one_message(
    inbox: CatalogInbox, sql: Sql, schema: SchemaName, tmp_path: Path
) -> None:
    insert = f"insert into {schema.table('inbox')} (message_id, kind, job_id) values"
    sql.run(f"{insert} ('a', 'complete', 7), ('a', 'complete', 7), ('b', 'complete', 7)")
    inbox.collect()
    found = receive(tmp_path / "inbox")
    assert len(found) == 2
    for each in found:
        remove(each)
    inbox.settle()
    assert _count(sql, schema) == 0


def test_what_is_no_message_is_set_aside_and_stops_none_that_is(
    inbox: CatalogInbox, sql: Sql, schema: SchemaName, tmp_path: Path
) -> None:
    sql.run(
        f"insert into {schema.table('inbox')} (message_id, sent_at, kind, job_id, content) values"
        " ('1', null, 'complete', 7, null), ('2', null, 'dance', 7, null),"
        " ('3', null, null, 7, null), ('4', null, 'complete', null, '[]'),"
        " ('../../5', null, 'complete', 7, '{'), (null, null, 'events', null, null),"
        " ('7', null, 'events', null, 'no json'),"
        """ ('8', null, 'complete', 7, '{"run_id": 1, "run_id": 2}'),"""
        """ ('9', null, 'complete', 7, '{"run_id": NaN}')"""
    )
    folder = tmp_path / "inbox"
    quarantine = Quarantine(folder, NOON)
    inbox.collect()
    (healthy,) = receive(folder, quarantine)
    assert healthy.job_id == 7
    assert healthy.sent_at == NOON
    for batch in receive_batches(folder, at=NOON, quarantine=quarantine):
        remove_batches([batch])
    reasons = sorted(each.reason for each in quarantined(folder))
    assert len(reasons) == 7
    # As a file with the same content is.
    assert "a key stands in it twice" in reasons
    assert "NaN is not a JSON number" in reasons
    remove(healthy)
    inbox.settle()
    assert _count(sql, schema) == 0
    assert [*tmp_path.iterdir()] == [folder]


def test_a_message_that_was_bound_to_an_attempt_stays_so_while_it_waits(
    inbox: CatalogInbox, tmp_path: Path
) -> None:
    inbox.send(message())
    inbox.collect()
    (waits,) = receive(tmp_path / "inbox")
    bind(waits, run(1, 1, NOON, RunStatus.STARTED, attempt=3))
    inbox.settle()
    inbox.collect()
    (again,) = receive(tmp_path / "inbox")
    assert (again.intent_id, again.attempt) == ("first", 3)


def test_one_tick_takes_no_more_than_it_can_bear(
    inbox: CatalogInbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.store.catalog_inbox.MESSAGES_PER_TICK", 2)
    for number in range(3):
        inbox.send(message(job_id=number + 1, sent_at=NOON + timedelta(seconds=number)))
    inbox.collect()
    first = receive(tmp_path / "inbox")
    assert [each.job_id for each in first] == [1, 2]
    for each in first:
        remove(each)
    inbox.settle()
    inbox.collect()
    assert [each.job_id for each in receive(tmp_path / "inbox")] == [3]


def test_without_the_table_nothing_waits_and_a_sender_gets_an_error(
    sql: Sql, schema: SchemaName, tmp_path: Path
) -> None:
    inbox = CatalogInbox(sql, schema, lambda: tmp_path, FakeClock(NOON))
    assert inbox.peek() == []
    with pytest.raises(StateError, match=r"There is no table .*\.inbox: run `python -m harness"):
        inbox.send(message())


def test_a_sender_without_the_grant_gets_an_error_that_names_the_grant(
    request: pytest.FixtureRequest, served_warehouse: Warehouse, tmp_path: Path
) -> None:
    with opened("warehouse", request) as sql:
        inbox = inbox_of(sql, tmp_path)
        served_warehouse.denied.append(
            Denied(privilege="MODIFY", kind="Table", name=f"prod-eu.{NAME}.inbox")
        )
        with pytest.raises(StateError, match=r"cannot be written: .*MODIFY on .*inbox"):
            inbox.send(message())


# The state files.


def filled(folder: Path) -> StateDir:
    home = StateDir(folder=folder)
    (folder / "accepted" / "seeds").mkdir(parents=True)
    (folder / "inbox" / "quarantine").mkdir(parents=True)
    (folder / "installation").write_text("one")
    (folder / "state.json").write_bytes(bytes(range(256)) * 1000)
    (folder / "accepted" / "seeds" / "it's.csv").write_text("ü")
    (folder / "inbox" / "quarantine" / "x.json").write_text("{")
    (folder / "lock").write_text("of this machine")
    return home


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_another_machine_finds_the_files_of_the_last(
    sql: Sql, schema: SchemaName, tmp_path: Path
) -> None:
    first = filled(tmp_path / "first")
    files = CatalogFiles(sql, schema, FakeClock(NOON))
    files.save(first, epoch=1)
    other = StateDir(folder=tmp_path / "other")
    other.folder.mkdir()
    other.status.write_text("of before")
    files = CatalogFiles(sql, schema, FakeClock(NOON))
    files.restore(other, files.read())
    expected = contents(first.folder)
    del expected["lock"]
    assert contents(other.folder) == expected


def test_only_what_has_changed_is_written(sql: Sql, schema: SchemaName, tmp_path: Path) -> None:
    home = filled(tmp_path / "home")
    files = CatalogFiles(sql, schema, FakeClock(NOON))
    files.save(home, epoch=1)
    before = sql.statement_count
    files.save(home, epoch=1)
    assert sql.statement_count == before
    home.status.write_text("{}")
    (home.folder / "inbox" / "quarantine" / "x.json").unlink()
    files.save(home, epoch=1)
    assert sql.statement_count == before + 1
    again = StateDir(folder=tmp_path / "again")
    again.folder.mkdir()
    files = CatalogFiles(sql, schema, FakeClock(NOON))
    files.restore(again, files.read())
    assert {*contents(again.folder)} == {
        "installation",
        "state.json",
        "status.json",
        "accepted/seeds/it's.csv",
    }


def test_a_writer_whose_turn_is_over_overwrites_nothing(
    sql: Sql, schema: SchemaName, tmp_path: Path
) -> None:
    home = filled(tmp_path / "home")
    frozen = CatalogFiles(sql, schema, FakeClock(NOON))
    frozen.save(home, epoch=1)
    frozen.restore(home, frozen.read())
    later = CatalogFiles(sql, schema, FakeClock(NOON))
    later.restore(home, later.read())
    home.state.write_text("of the later one")
    later.save(home, epoch=2)
    home.state.write_text("of the one that was frozen")
    frozen.save(home, epoch=1)
    later.restore(home, later.read())
    assert home.state.read_text() == "of the later one"


def test_a_quarantined_item_that_is_deleted_from_the_table_stays_away(
    sql: Sql, schema: SchemaName, tmp_path: Path
) -> None:
    home = filled(tmp_path / "home")
    files = CatalogFiles(sql, schema, FakeClock(NOON))
    files.save(home, epoch=1)
    files.restore(home, files.read())
    # While a tick works, and before its last statement.
    sql.run(delete_item(schema, "x.json"))
    home.status.write_text("{}")
    files.save(home, epoch=1)
    other = StateDir(folder=home.folder)
    files = CatalogFiles(sql, schema, FakeClock(NOON))
    files.restore(other, files.read())
    assert not (home.folder / "inbox" / "quarantine" / "x.json").exists()
    assert home.status.read_text() == "{}"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("../outside", zlib.compress(b"x"), "no file of a state directory"),
        ("inbox/../../outside", zlib.compress(b"x"), "no file of a state directory"),
        ("/etc/passwd", zlib.compress(b"x"), "no file of a state directory"),
        ("inbox", zlib.compress(b"x"), "no file of a state directory"),
        ("lock", zlib.compress(b"x"), "no file of a state directory"),
        ("state.json", b"no zlib", "cannot be unpacked"),
        ("state.json", zlib.compress(b"x" * 1000)[:-3], "cut off or too large"),
    ],
)
def test_a_row_that_no_process_of_ours_has_written_is_refused(
    spark: "SparkSession", tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    sql, schema = SessionSql(lambda: spark), SchemaName(NAME)
    sql.run(f"create schema if not exists {schema.in_sql}")
    sql.run(f"drop table if exists {schema.table('state_files')}")
    files = CatalogFiles(sql, schema, FakeClock(NOON))
    files.save(filled(tmp_path / "home"), epoch=1)
    packed = base64.b64encode(content).decode()
    sql.run(
        f"insert into {schema.table('state_files')}"
        f" values ({literal(name)}, unbase64('{packed}'), current_timestamp(), 1)"
    )
    if name == "state.json":
        sql.run(f"delete from {schema.table('state_files')} where length(content) > 500")
    target = StateDir(folder=tmp_path / "target")
    target.folder.mkdir()
    with pytest.raises(StateError, match=f"damaged at the name '{name}': .*{reason}"):
        files.restore(target, files.read())
    assert not (tmp_path / "outside").exists()


def _count(sql: Sql, schema: SchemaName) -> object:
    return sql.run(f"select count(*) as n from {schema.table('inbox')}")[0]["n"]


def _without_path(message: Message) -> Message:
    return replace(message, path=None)
