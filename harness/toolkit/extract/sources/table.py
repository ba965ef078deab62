"""Extracts from a table that Spark reads, by a column that grows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.platform.sql_names import in_sql, is_path
from harness.toolkit.extract.lookback import checked_table, one_sentence
from harness.toolkit.extract.sources.base import Batch
from harness.toolkit.extract.span import ByColumn, Span, check_kinds, span_of
from harness.toolkit.extract.target import Bronze
from harness.toolkit.extract.values import (
    Kind,
    Value,
    collected,
    column_of,
    field_type,
    kind_of,
    literal,
    value_from,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(ByColumn):
    """A table of the session's catalogs, or a Delta table by its path, followed by a column."""

    #: ``schema.table``, ``catalog.schema.table``, or a path.
    table: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.table

    def read(self, bronze: Bronze) -> Batch | None:
        """Return the rows from the largest value that bronze has, that value included.

        Raises:
            ConfigurationError: The column is none that shows how far an extract has come.
            ExtractError: The table cannot be read.
        """
        self.check_name(self.name)
        with one_sentence(self.name):
            rows = self._rows(bronze)
            kind = kind_of(field_type(rows.schema, self.column, self.name), self.column, self.name)
            self.check(self.name, kind)
            newest = newest_of(bronze, self.name, self.column, kind)
            ends = self._ends(rows, newest, kind) if self.piece is not None else None
            span = span_of(self, newest, ends)
            return batch_of(rows, span, self.column)

    def _rows(self, bronze: Bronze) -> "DataFrame":
        if is_path(self.table):
            return bronze.session.read.format("delta").load(self.table)
        return bronze.session.table(in_sql(checked_table(self.table)))

    def _ends(
        self, rows: "DataFrame", newest: Value | None, kind: Kind
    ) -> tuple[Value | None, Value | None]:
        from pyspark.sql import functions as f

        value = column_of(self.column)
        if newest is not None:
            rows = rows.where(value > literal(newest))
        ends = collected(f.min(value), kind), collected(f.max(value), kind)
        first, last = rows.agg(*ends).collect()[0]
        return value_from(first, kind), value_from(last, kind)


def newest_of(bronze: Bronze, source: str, column: str, kind: Kind) -> Value | None:
    """Return how far bronze has come, in values of the source's kind.

    Raises:
        ConfigurationError: Bronze has no such column, or one of another kind.
    """
    if not bronze.is_there:
        return None
    there = kind_of(field_type(bronze.schema, column, bronze.name), column, bronze.name)
    check_kinds(source, column, kind, (bronze.name, there))
    return bronze.newest(column)


def batch_of(rows: "DataFrame", span: Span, column: str) -> Batch:
    """Return the rows of a span."""
    condition = span.condition(column)
    return Batch(
        frame=rows if condition is None else rows.where(condition),
        since=span.since_text,
        column=column,
        is_more=span.is_more,
    )
