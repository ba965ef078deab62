"""A state directory without correlation ids: its ledger gets the column when models are rebuilt."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from harness.events.event import EventRow
from harness.record.correlate import SameChanges
from harness.store.rows import Ledger, Tick
from tests.support.disk_ledgers import create_ledgers
from tests.support.ledgers import event

AT = datetime(2026, 3, 1, 8, tzinfo=UTC)


def test_a_ledger_that_got_its_newest_column_later_takes_rows_and_gives_the_old_ones(
    tmp_path: Path,
) -> None:
    store = create_ledgers(tmp_path)
    folder = tmp_path / "heartbeat.db" / Ledger.EVENTS
    older = pa.schema(DeltaTable(folder).schema().to_arrow())
    older = older.remove(older.get_field_index("change_id"))
    old, new = event(1, AT, "delta:orders", "3"), event(2, AT, "delta:orders", "4")
    values = {name: getattr(old, name) for name in older.names} | {"tags": [*old.tags.items()]}
    write_deltalake(
        folder, pa.Table.from_pylist([values], older), mode="overwrite", schema_mode="overwrite"
    )
    # As dbt does it: `alter table ... add columns`.
    DeltaTable(folder).alter.add_columns([Field("change_id", PrimitiveType("string"))])

    store.append(Ledger.EVENTS, [new])

    rows = sorted(store.read(Ledger.EVENTS), key=lambda row: str(row["event_id"]))
    assert [row["change_id"] for row in rows] == [None, "e2"]
    assert EventRow.from_row(rows[0]) == old

    same = SameChanges(store, Tick(number=3, at=AT))
    same.read([old])
    assert same.earlier(old) == old
