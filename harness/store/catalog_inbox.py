"""The inbox as a table of the schema, into which any principal with the grant inserts a message.

A tick copies the rows into the inbox of its own folder, where they are read, bound and set aside
like the files that are left there on the local target, and deletes the rows of which nothing is
left in it. A row that is copied twice is one file, so it counts once.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from harness.errors import StateError
from harness.platform.clock import Clock
from harness.platform.files import unwritable
from harness.platform.sql.port import Row, Sql, SqlError
from harness.platform.sql_names import SchemaName, literal, quoted
from harness.store.inbox import (
    BYTES_PER_TICK,
    MESSAGES_PER_TICK,
    Message,
    NoMessageError,
    checked_json,
    name_of_events,
    name_of_message,
    object_in,
    peek,
)

TABLE = "inbox"
#: The kind of a row whose content is data-change events, one JSON object on each line.
EVENTS = "events"
#: What is longer is cut off, and then is no JSON.
_LONGEST_CONTENT = 16 * 2**20
_COLUMNS: Mapping[str, str] = {
    "message_id": "string",
    "sent_at": "timestamp default current_timestamp()",
    "sent_by": "string",
    "kind": "string",
    "job_id": "bigint",
    "run_id": "bigint",
    "intent_id": "string",
    "reason": "string",
    "content": "string",
}
#: The columns that are fields of a message; ``content`` has the others.
_FIELDS = ("kind", "job_id", "run_id", "intent_id", "sent_by", "reason")
#: Two equal rows without an id are one message. A session's time zone must not change the name.
_ID = (
    "substr(sha2(coalesce(message_id, to_json(struct(unix_micros(sent_at) as sent_at, sent_by,"
    " kind, job_id, run_id, intent_id, reason, content))), 256), 1, 32)"
)


class CatalogInbox:
    """The table ``inbox`` of one schema, and the folder into which a process copies it.

    Args:
        sql: Runs the statements.
        schema: The schema, with its catalog where there is one.
        folder: Returns the inbox of this process's own folder.
        clock: The one clock.
    """

    def __init__(
        self, sql: Sql, schema: SchemaName, folder: Callable[[], Path], clock: Clock
    ) -> None:
        self._sql, self._place, self._clock = sql, folder, clock
        self._name = f"{schema}.{TABLE}"
        self._table = schema.table(TABLE)
        #: Rows that were read together with others.
        self._held: Sequence[Row] | None = None
        #: The files of the rows that were copied, by the row's id.
        self._copied: dict[str, Path] = {}

    @property
    def _folder(self) -> Path:
        return self._place()

    def create(self) -> None:
        """Make the table, unless it is there.

        Raises:
            StateError: It cannot be made.
        """
        columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        self._run(
            f"create table if not exists {self._table} ({columns}) using delta"
            " tblproperties ('delta.feature.allowColumnDefaults' = 'supported')",
            "made",
        )

    def send(self, message: Message) -> str:
        """Leave a message for the next tick, and return its name.

        Raises:
            ConfigurationError: No tick could read it.
            StateError: The table cannot be written.
        """
        content = checked_json(message)
        fields = {name: content.pop(name, None) for name in _FIELDS}
        del content["sent_at"]
        rest = {name: value for name, value in content.items() if value is not None}
        return self._insert(message.sent_at, fields, json.dumps(rest) if rest else None)

    def send_events(self, lines: str, *, at: datetime) -> str:
        """Leave data-change events for the next tick, one JSON object on each line.

        Raises:
            StateError: The table cannot be written.
        """
        return self._insert(at, {"kind": EVENTS}, lines)

    def peek(self) -> list[Message]:
        """Read every message, oldest first; nothing is removed.

        Raises:
            StateError: The table cannot be read.
        """
        self.collect()
        return peek(self._folder)

    @property
    def query(self) -> str:
        """The query whose rows ``hold`` takes: what waits, as much as one tick ingests."""
        columns = ", ".join(each for each in _COLUMNS if each not in ("message_id", "content"))
        return (
            "select * from (select *, row_number() over oldest as place,"
            " sum(coalesce(length(content), 0)) over oldest as characters from (select"
            f" {_ID} as id, {columns}, substr(content, 1, {_LONGEST_CONTENT}) as content"
            f" from {self._table}) window oldest as (order by sent_at, id rows unbounded preceding)"
            f") where place = 1 or place <= {MESSAGES_PER_TICK} and characters <= {BYTES_PER_TICK}"
        )

    def hold(self, rows: Sequence[Row]) -> None:
        """Take the rows as those that the next ``collect`` would read."""
        self._held = rows

    def collect(self) -> None:
        """Copy what waits into the folder.

        Raises:
            StateError: The table cannot be read, or the folder not be written.
        """
        rows = self._run(self.query, "read") if self._held is None else self._held
        self._held = None
        self._copied = {str(row["id"]): self._file(row) for row in rows}
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for row in rows:
                path = self._copied[str(row["id"])]
                # One that is there may be bound to an attempt meanwhile.
                if not path.exists():
                    path.write_text(_text(row, self._clock.now()), errors="surrogatepass")
        except OSError as error:
            raise unwritable(self._folder, error) from error

    def has_news(self) -> bool:
        """Return False: querying the table costs a statement."""
        return False

    def settle(self) -> None:
        """Delete the rows whose files have left the folder: a ledger has their content.

        Raises:
            StateError: The table cannot be written; the next tick ingests them again, and once.
        """
        over = [row_id for row_id, path in self._copied.items() if not path.exists()]
        if over:
            listed = ", ".join(map(literal, over))
            self._run(f"delete from {self._table} where {_ID} in ({listed})", "written")
            for row_id in over:
                del self._copied[row_id]

    def _file(self, row: Row) -> Path:
        """Return the file of a row, which is the same whenever the row is copied."""
        at = row["sent_at"] if isinstance(row["sent_at"], datetime) else None
        named = name_of_events if row["kind"] == EVENTS else name_of_message
        return self._folder / named(at, str(row["id"]))

    def _insert(self, at: datetime, fields: Mapping[str, object], content: str | None) -> str:
        # A statement whose answer was lost may be sent again: both rows then have this id.
        name = uuid.uuid4().hex
        row = {"message_id": name, "sent_at": at, **fields, "content": content}
        columns = ", ".join(map(quoted, row))
        values = ", ".join(map(literal, row.values()))
        self._run(f"insert into {self._table} ({columns}) values ({values})", "written")
        return name

    def _run(self, statement: str, done: str) -> list[Row]:
        try:
            return self._sql.run(statement)
        except SqlError as error:
            if not error.is_not_there:
                raise StateError(
                    f"The table {self._name} cannot be {done}: {error};"
                    " `python -m harness doctor` shows what to do"
                ) from error
            if done == "read":
                return []
            raise StateError(
                f"There is no table {self._name}: run `python -m harness init` as a job of the"
                " workspace first, or correct HEARTBEAT_CATALOG and HEARTBEAT_SCHEMA"
            ) from error


def _text(row: Row, now: datetime) -> str:
    """Return the text of the row's file; what is no message is set aside when it is read."""
    content = str(row["content"] or "")
    if row["kind"] == EVENTS:
        return content
    try:
        said = object_in(content.encode(errors="surrogatepass")) if content else {}
    except NoMessageError:
        return content
    sent_at = row["sent_at"] if isinstance(row["sent_at"], datetime) else now
    fields = {name: row[name] for name in _FIELDS if row[name] is not None}
    return json.dumps({**said, **fields, "sent_at": sent_at.isoformat()})
