"""What the report reads of refresh models and self-healing models."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from harness.inspect.page.models import _BATCHES, _PARTITIONS, BATCH_LOG, TAKEN, read_models
from harness.store.local import LocalStore
from tests.support.ledgers import TEN, minutes

PROJECT = Path(__file__).resolve().parents[4]


def write(warehouse: Path, table: str, *rows: dict[str, object]) -> None:
    write_deltalake(warehouse / "sales.db" / table, pa.Table.from_pylist([*rows]))


def batch(number: int, step: int, state: str, at: int = 1) -> dict[str, object]:
    return {
        "s_input_id": number, "step": step, "state": state, "received_at": minutes(at),
        "recorded_at": minutes(at), "record_count": 5, "message": "m",
    }  # fmt: skip


def took(source: str, partition: str, *, at: int = 1, **changed: object) -> dict[str, object]:
    """A row of the record; the macro writes it with the columns that are not read here, too."""
    return {
        "source": source, "source_id": "s", "partition_column": "day", "partition": partition,
        "stamp": "1/X", "look_back_days": 7, "table_id": "t", "table_version": at,
        "taken_at": minutes(at), **changed,
    }  # fmt: skip


def test_a_batch_is_shown_as_its_greatest_step_left_it_the_newest_first(tmp_path: Path) -> None:
    rows = [batch(1, 3, "UNLOADED"), batch(1, 1, "STAGED"), batch(2, 2, "COMPLETE")]
    write(tmp_path, "orders_ledger", *rows, batch(0, 0, "COMPLETE", at=-1))
    (model,) = read_models(["sales.orders"], lambda schema: LocalStore(tmp_path, schema), TEN)
    assert [(each.number, each.state) for each in model.batches] == [
        (2, "COMPLETE"),
        (1, "UNLOADED"),
    ]
    assert model.problem is None


def test_a_source_has_its_partitions_and_the_last_time_that_one_was_taken(tmp_path: Path) -> None:
    taken = [
        took(source, day, at=at)
        for source, day, at in [("a.b", "1", 1), ("a.b", "1", 9), ("a.b", "2", 3), ("a.c", "1", 2)]
    ]
    write(tmp_path, "daily_taken", *taken)
    (model,) = read_models(["sales.daily"], lambda schema: LocalStore(tmp_path, schema), TEN)
    found = [(each.name, each.partition_count, each.taken_at) for each in model.sources]
    assert found == [("a.b", 2, TEN + timedelta(minutes=9)), ("a.c", 1, TEN + timedelta(minutes=2))]


def test_a_model_that_cannot_be_read_is_reported_beside_the_others(tmp_path: Path) -> None:
    write(tmp_path, "orders_ledger", batch(1, 1, "COMPLETE"))
    write(tmp_path, "torn_ledger", {"s_input_id": 1})
    write(tmp_path, "odd_ledger", batch(1, 1, "COMPLETE") | {"s_input_id": "one"})
    names = ["sales.torn", "sales.odd", "sales.absent", "sales.orders"]
    torn, odd, absent, orders = read_models(names, lambda name: LocalStore(tmp_path, name), TEN)
    assert odd.problem is not None
    assert "one" in odd.problem
    assert torn.problem is not None
    assert "torn_ledger" in torn.problem
    assert absent.problem == ("neither absent_ledger nor absent_taken is there: it has not run yet")
    assert len(orders.batches) == 1


def test_the_columns_that_are_read_are_those_that_the_macros_write() -> None:
    logged = (PROJECT / "macros/refresh/batch_log.sql").read_text()
    assert all(f"'{name}':" in logged for name in _BATCHES)
    taken = (PROJECT / "macros/partitions/record.sql").read_text()
    types = ("string", "timestamp", "int", "bigint")
    assert all(any(f"{name} {each}" in taken for each in types) for name in _PARTITIONS)
    assert f"'ledger': '{BATCH_LOG}'" in (PROJECT / "macros/refresh/context.sql").read_text()
    assert f"identifier ~ '{TAKEN}'" in taken
