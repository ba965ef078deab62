"""Extracts from a Delta table by its versions: the rows that came since the last one taken."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError, ExtractError, ProbeFailedError
from harness.events.event import ChangeEvent, TableFormat
from harness.platform.sql_names import in_sql, is_path
from harness.toolkit.changes.answer import Changed
from harness.toolkit.changes.rows import changed_rows
from harness.toolkit.extract.lookback import checked_table, one_sentence
from harness.toolkit.extract.schema.apply import quoted
from harness.toolkit.extract.sources.base import Batch
from harness.toolkit.extract.target import Bronze

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The version that a row of bronze was taken with, and the generation of the table it was.
VERSION, TABLE_ID = "_source_version", "_source_table_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaVersions:
    """A Delta table, followed by the versions of its log; no row comes twice.

    Of a row that was changed the new state comes, of one that was deleted nothing.
    """

    #: ``schema.table``, ``catalog.schema.table``, or a path.
    table: str
    #: At most so many versions are read at once; the first time all rows are.
    most: int | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.table

    def read(self, bronze: Bronze) -> Batch | None:
        """Return the rows that came after the version that bronze has.

        Raises:
            ConfigurationError: The table's name is none, or ``most`` is less than one.
            ExtractError: The table cannot be read, or its log is behind bronze.
        """
        if self.most is not None and self.most < 1:
            raise ConfigurationError(
                f"{self.name}: most is {self.most}; allowed is an integer from 1"
            )
        with one_sentence(self.name):
            table_id, latest = self._facts(bronze.session)
            consumed = self._consumed(bronze, table_id)
            if consumed is None:
                rows = self._at(bronze.session, latest)
                return Batch(frame=_marked(rows, latest, table_id), until=str(latest))
            return self._after(bronze, consumed, (latest, table_id))

    def _after(self, bronze: Bronze, consumed: int, last: tuple[int, str]) -> Batch | None:
        latest, table_id = last
        if consumed > latest:
            raise ExtractError(
                f"{self.name} is at version {latest}, and {bronze.name} has rows of version"
                f" {consumed}; it was restored from a copy: extract it into another table"
            )
        until = consumed
        while until < latest:
            # Versions without rows, as of maintenance, leave no trace in bronze.
            until = latest if self.most is None else min(latest, until + self.most)
            changed = self._changed(bronze.session, consumed, until)
            if not changed.is_nothing:
                if changed.reason:
                    bronze.note(f"{self.name}: {changed.reason}")
                rows = _marked(changed.rows(), until, table_id)
                return Batch(
                    frame=rows, since=str(consumed), until=str(until), is_more=until < latest
                )
        return None

    def _changed(self, spark: "SparkSession", since: int, until: int) -> Changed:
        event = ChangeEvent(
            table=self.table,
            snapshot_id=str(until),
            prev_snapshot_id=str(since),
            table_format=TableFormat.DELTA,
        )
        try:
            return changed_rows(spark, [event])
        except ProbeFailedError as error:
            raise ExtractError(str(error)) from error

    def _consumed(self, bronze: Bronze, table_id: str) -> int | None:
        from pyspark.sql import functions as f

        if not bronze.is_there:
            return None
        found = bronze.newest(VERSION, f.col(TABLE_ID) == table_id)
        if found is None and bronze.rows().limit(1).count():
            bronze.note(
                f"{self.name} is another table than the one whose rows {bronze.name} has, so"
                " everything is extracted again"
            )
        return None if found is None else int(str(found))

    @property
    def _sql_name(self) -> str:
        if is_path(self.table):
            return f"delta.{quoted(self.table)}"
        return in_sql(checked_table(self.table))

    def _facts(self, spark: "SparkSession") -> tuple[str, int]:
        detail = spark.sql(f"describe detail {self._sql_name}").collect()[0]
        if detail["format"] != "delta":
            raise ConfigurationError(
                f"{self.name} is a table of {detail['format']}, which has no versions of Delta;"
                " name a Delta table"
            )
        history = spark.sql(f"describe history {self._sql_name} limit 1").collect()[0]
        return str(detail["id"]), int(history["version"])

    def _at(self, spark: "SparkSession", version: int) -> "DataFrame":
        return spark.sql(f"select * from {self._sql_name} version as of {int(version)}")


def _marked(rows: "DataFrame", version: int, table_id: str) -> "DataFrame":
    from pyspark.sql import functions as f

    return rows.withColumns({VERSION: f.lit(version).cast("bigint"), TABLE_ID: f.lit(table_id)})
