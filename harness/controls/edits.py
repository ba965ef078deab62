"""Finds what others have written into ``heartbeat_control``, before publishing overwrites it.

The table shows the controls and is no place to change them: who may change which job, and what it
was before, is what the CSV and its history record. An edit of the table is reported with the line
of the CSV to edit, and the row is published again.
"""

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from pathlib import Path

from harness.controls.load import CONTROLS, newest_controls
from harness.controls.parse import ControlRow, read_controls
from harness.errors import ControlsError
from harness.platform.json_file import load, save
from harness.platform.text import escaped
from harness.store.quarantine import Quarantined
from harness.store.rows import Ledger, Store

log = logging.getLogger(__name__)

TABLE = "heartbeat_control"
#: Columns that people write in the CSV, and their names in the ledger of controls.
_WRITTEN = {
    "sensor_read_type": "sensor_read_type",
    "asset_description": "asset_description",
    "upstream_key": "upstream_key",
    "preprocess_query": "preprocess_query",
    "trigger_job_name": "job_name",
    "job_state": "job_state",
    "dependency_flag": "dependency_flag",
}
_LONGEST_VALUE = 80


class PublishedTable:
    """The control table as the last tick that published has left it.

    Args:
        file: Names that state of the table.
        store: Has the table, and the ledger of controls.
        project: The folder with ``dbt_project.yml``.
    """

    def __init__(self, file: Path, store: Store, project: Path) -> None:
        self._file = file
        self._store = store
        self._project = project

    def note(self, fingerprint: str | None) -> None:
        """Take the contents of that fingerprint for what was published.

        Raises:
            StateError: The state directory cannot be written.
        """
        save(self._file, {"fingerprint": fingerprint})

    def fingerprint(self) -> str | None:
        """Name the table's present contents."""
        return self._store.fingerprints([TABLE])[TABLE]

    def edits(self, at: datetime) -> tuple[Quarantined, ...]:
        """Return the rows that show neither what is recorded nor what the CSV has now.

        The second is what a tick has published that died before it recorded it.

        Raises:
            StateError: A table cannot be read, or the state directory cannot be written.
        """
        now = self.fingerprint()
        if now is None or now == self._noted():
            return ()
        rows = self._rows_of_csv()
        found = [*_differences(self._shown(), self._recorded(), rows, self._ever())]
        if not found:
            self.note(now)
        return tuple(self._item(key, what, rows.get(key), at) for key, what in found)

    def _item(self, key: "_Key", what: str, row: ControlRow | None, at: datetime) -> Quarantined:
        place = f"line {row.line} of {CONTROLS}" if row else str(CONTROLS)
        reason = escaped(
            f"{what}. The table only shows the controls, so that nothing follows from an edit of "
            f"it, and the row is published again: edit {place} instead."
        )
        name = escaped(f"{TABLE}: {key[1]} of job {key[2]}")
        log.warning("%s: %s", name, reason)
        return Quarantined(name=name, since=at, reason=reason, path=self._project / CONTROLS)

    def _noted(self) -> object:
        return load(self._file, itemgetter("fingerprint"))

    def _shown(self) -> "dict[_Key, _Cells]":
        return {
            (str(row["sensor_source"]), str(row["sensor_id"]), str(row["trigger_job_id"])): {
                name: row[name] for name in _WRITTEN
            }
            for row in self._store.read(TABLE)
        }

    def _recorded(self) -> "dict[_Key, _Cells]":
        return {
            _key(row): {name: row[recorded] for name, recorded in _WRITTEN.items()}
            for row in newest_controls(self._store).values()
        }

    def _ever(self) -> "set[_Key]":
        columns = ["sensor_source", "sensor_id", "job_id"]
        return set(map(_key, self._store.read(Ledger.CONTROLS, columns=columns)))

    def _rows_of_csv(self) -> "dict[_Key, ControlRow]":
        try:
            rows = read_controls(self._project / CONTROLS).rows
        except ControlsError:
            # The tick that reads the file reports it.
            return {}
        return {(row.source, row.sensor_id, str(row.job_id)): row for row in rows}


_Key = tuple[str, str, str]
_Cells = Mapping[str, object]


def _differences(
    shown: Mapping[_Key, _Cells],
    recorded: Mapping[_Key, _Cells],
    rows: Mapping[_Key, ControlRow],
    ever: set[_Key],
) -> Iterator[tuple[_Key, str]]:
    for key, cells in shown.items():
        if key in rows and cells == _as_shown(rows[key]):
            continue
        if key in recorded:
            before = recorded[key]
            changed = [
                f"{name} was changed from {_value(before[name])} to {_value(cells[name])}"
                for name in _WRITTEN
                if cells[name] != before[name]
            ]
            if changed:
                yield key, ", ".join(changed)
        elif key not in ever:
            # One that was recorded is left by a tick that died while it published.
            yield key, "the row was added"
    for key in recorded.keys() - shown.keys():
        if key in rows:
            yield key, "the row was deleted"


def _as_shown(row: ControlRow) -> _Cells:
    """Return the cells of a row of the CSV as the models clean them."""
    return {
        "sensor_read_type": row.sensor_read_type.lower(),
        "asset_description": row.asset_description or None,
        "upstream_key": row.upstream_key or None,
        "preprocess_query": row.preprocess_query or None,
        "trigger_job_name": row.trigger_job_name,
        "job_state": row.job_state.upper(),
        "dependency_flag": row.dependency_flag.upper() or "TRUE",
    }


def _value(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _key(row: Mapping[str, object]) -> _Key:
    return str(row["sensor_source"]), str(row["sensor_id"]), str(row["job_id"])
