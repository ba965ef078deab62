"""The ledgers as tables of a catalog, read by SQL and appended by a Spark session: for Databricks.

There the table format itself admits several writers. Reading needs a warehouse or a session;
appends carry a fencing token, which only a session can write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from harness.errors import StateError
from harness.platform.sql.port import Row, Sql, SqlError, read_together
from harness.platform.sql_names import SchemaName, literal
from harness.store.conditions import SPARK
from harness.store.public_tables import PublicTable
from harness.store.rows import FencingToken, Ledger, LedgerRow, Question
from harness.store.views import unreadable


class CatalogStore:
    """Tables of one schema of a catalog.

    Args:
        sql: Runs the statements.
        schema: The schema, with its catalog where there is one.
    """

    def __init__(self, sql: Sql, schema: SchemaName) -> None:
        self._sql = sql
        self._schema = schema
        #: What was read together with others, until this process may have changed it.
        self._known: dict[str, str] = {}
        self._expected: dict[str, list[Row]] = {}

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], fencing_token: FencingToken | None = None
    ) -> None:
        """Append rows in one commit; no rows, no commit, and none below the last fencing token.

        Raises:
            StateError: The ledger cannot be written.
        """
        if rows:
            self._commit(ledger, rows, fencing_token)

    def fence(self, fencing_token: FencingToken) -> None:
        """Commit the token alone to every ledger that is there, and check that each keeps it.

        Raises:
            StateError: A ledger cannot be written, or does not keep fencing tokens.
        """
        there = self._tables()
        for ledger in (each for each in Ledger if each in there):
            before = self.fingerprint(ledger)
            self._commit(ledger, (), fencing_token)
            after = self.fingerprint(ledger)
            # A second time the same token has to count as done: that is what holds others off.
            self._commit(ledger, (), fencing_token)
            if before == after or self.fingerprint(ledger) != after:
                raise StateError(
                    f"The ledger {ledger} does not keep the stamps of its writers, so a process "
                    "that has lost the lease could still write to it: nothing is started; tick "
                    "with a cluster whose Delta Lake has idempotent writes (txnAppId)"
                )

    def _commit(
        self, ledger: Ledger, rows: Sequence[LedgerRow], fencing_token: FencingToken | None
    ) -> None:
        options: dict[str, str | int] = {}
        if fencing_token is not None:
            # The table's own log keeps the newest version, and drops what is not above it.
            options = {"txnAppId": fencing_token.application, "txnVersion": fencing_token.version}
        try:
            values = [asdict(row) for row in rows]
            self.forget()
            self._sql.append(self._schema.table(ledger), values, options)
        except Exception as error:
            raise StateError(
                f"The ledger {ledger} cannot be written: {_words(error)}; nothing was started that"
                " is not recorded"
            ) from error

    def merge(self, table: PublicTable) -> None:
        """Give a public table the rows of its model and no others.

        Raises:
            StateError: The table cannot be written.
        """
        self.forget()
        try:
            self._sql.run(
                f"merge into {self._schema.table(table.name)} as published"
                f" using {self._schema.table(table.model)} as wanted on {table.is_same_row}"
                f" when matched and ({table.has_changed}) then update set *"
                " when not matched then insert *"
                " when not matched by source then delete"
            )
        except SqlError as error:
            raise StateError(
                f"The table {table.name} cannot be written: {error}; the next tick publishes again"
            ) from error

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        """Read a table's rows that meet every condition; a table that is not there has none.

        Raises:
            StateError: The table cannot be read.
        """
        statement = self._statement(Question(table=table, where=where, columns=columns))
        if (expected := self._expected.pop(statement, None)) is not None:
            return expected
        try:
            return self._sql.run(statement)
        except SqlError as error:
            if error.is_not_there:
                return []
            raise unreadable(f"The table {table}", error) from error
        except Exception as error:
            raise StateError(
                f"The table {table} cannot be read: {_words(error)};"
                " `python -m harness doctor` shows what to do"
            ) from error

    def expect(self, questions: Sequence[Question]) -> None:
        """Read with one statement what is requested next; each result is returned once.

        Where a table is missing, nothing is read.

        Raises:
            SqlError: The tables cannot be read.
        """
        queries = {f"q{number}": self._statement(each) for number, each in enumerate(questions)}
        try:
            found = read_together(self._sql, queries)
        except SqlError as error:
            if not error.is_not_there:
                raise
        else:
            self._expected = {queries[name]: rows for name, rows in found.items()}

    def _statement(self, question: Question) -> str:
        table = self._schema.table(question.table)
        return SPARK.select(table, question.where, question.columns)

    def exists(self, table: str) -> bool:
        """Return whether the table is there."""
        return str(table).lower() in self._tables(like=table)

    def fingerprint(self, table: str) -> str | None:
        """Name the newest commit: its version and time."""
        try:
            rows = self._sql.run(f"describe history {self._schema.table(table)} limit 1")
        except SqlError as error:
            if error.is_not_there:
                return None
            raise
        return f"{rows[0]['version']}:{rows[0]['timestamp']}" if rows else None

    def fingerprints(self, tables: Sequence[str]) -> dict[str, str | None]:
        """Name the present contents of many tables with one statement, or three if any is missing.

        A ledger only grows, so its contents are identified by the number of its rows and its newest
        tick, which the table's statistics provide; of another table every cell counts.
        """
        names = [*map(str, tables)]
        if self._known.keys() >= {*names}:
            # Given once: the next time others may have written.
            return {name: self._known.pop(name) for name in names}
        try:
            found = self._contents(tables)
        except SqlError as error:
            if not error.is_not_there:
                raise
            there = self._tables()
            found = self._contents([each for each in tables if each.lower() in there])
        return {name: found.get(name) for name in names}

    def contents_query(self, tables: Sequence[str]) -> str:
        """Return the query whose rows ``hold`` takes: the present contents of tables."""
        return " union all ".join(
            f"select {literal(str(table))} as table_name, count(*) as row_count,"
            f" {_newest(table)} as newest from {self._schema.table(table)}"
            for table in tables
        )

    def hold(self, rows: Sequence[Row]) -> None:
        """Take the rows as those that the next ``fingerprints`` would read."""
        self._known = _fingerprints_in(rows)

    def forget(self) -> None:
        """Read again what was held: this process writes to a table."""
        self._known = {}

    def _contents(self, tables: Sequence[str]) -> Mapping[str, str]:
        return _fingerprints_in(self._sql.run(self.contents_query(tables))) if tables else {}

    def _tables(self, *, like: str | None = None) -> frozenset[str]:
        pattern = f" like {literal(str(like))}" if like else ""
        try:
            rows = self._sql.run(f"show tables in {self._schema.in_sql}{pattern}")
        except SqlError as error:
            if error.is_not_there:
                return frozenset()
            raise
        return frozenset(
            str(row["tableName"]).lower() for row in rows if not row.get("isTemporary")
        )


def _fingerprints_in(rows: Sequence[Row]) -> dict[str, str]:
    return {str(row["table_name"]): f"{row['row_count']}:{row['newest']}" for row in rows}


def _newest(table: str) -> str:
    if table in frozenset(Ledger):
        return "cast(max(tick_number) as string)"
    return "cast(sum(cast(xxhash64(*) as decimal(38, 0))) as string)"


def _words(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), repr(error))
