"""What the local ledgers make of text that has no form in UTF-8; without a JVM."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from harness.store.local import LocalStore
from harness.store.rows import Ledger
from tests.support.hostile import EVERYTHING, HALF, PRINTABLE, UNSEEN
from tests.support.ledgers import ORDERS, TEN, event

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("upstream_id", pa.string()),
        ("partition", pa.list_(pa.string())),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)


def kept(folder: Path, *texts: str) -> list[dict[str, object]]:
    """Record one event per text, and read them back."""
    DeltaTable.create(folder / "heartbeat.db" / Ledger.EVENTS, SCHEMA)
    store = LocalStore(folder, "heartbeat")
    first = event(1, TEN, ORDERS, "1")
    rows = [replace(first, event_id=text, tags={text: text}, partition=(text,)) for text in texts]
    store.append(Ledger.EVENTS, rows)
    return store.read(Ledger.EVENTS)


def test_a_ledger_gives_any_text_back_as_it_came(tmp_path: Path) -> None:
    texts = (*PRINTABLE, *UNSEEN)
    assert sorted(str(row["event_id"]) for row in kept(tmp_path, *texts)) == sorted(texts)


def test_half_a_character_stops_no_event_from_being_recorded(tmp_path: Path) -> None:
    [row] = kept(tmp_path, EVERYTHING)
    escape = HALF.replace("\ud800", r"\ud800")
    assert str(row["event_id"]).endswith(escape)
    [partition] = row["partition"]  # type: ignore[misc]
    assert partition.endswith(escape)
    assert row["tags"] == {partition: partition}
