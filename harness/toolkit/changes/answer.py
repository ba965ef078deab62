"""The result of a ``Question``: the changed rows, the range, and how they were found."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.toolkit.changes.chain import Chain
from harness.toolkit.changes.net_changes import CHANGE_TYPE, between, check_columns, gained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The table whose changed rows are requested."""

    session: "SparkSession"
    #: What Spark calls the table: its name, or its path.
    name: str
    chain: Chain
    #: The columns that identify a row in both of its states.
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """From where to where the changes lead."""

    #: The snapshot before the first change; ``None``: the rows are all that the table has.
    since: str | None = None
    #: The snapshot after the last one; ``None``: the table as it was when it was read.
    until: str | None = None
    #: The partitions that were read whole, one JSON value per level; ``None``: rows were reported.
    partitions: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The rows of one table that changed between two ends.

    ``frame`` has the columns of the table and ``_change_type``: ``insert`` or ``delete``, and where
    keys were given ``update_preimage`` and ``update_postimage`` for the old and the new state of a
    row. Rows that are the same at both ends are not in it.
    """

    frame: "DataFrame"
    #: Only what changed was read.
    is_incremental: bool
    #: One sentence: why more than that was read, or why there is nothing to read.
    reason: str | None
    range: Range
    #: The table reports that no row changed; nothing was read.
    is_nothing: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether the rows are all of the table: they take the place of what was there."""
        return not self.is_nothing and self.range.since is None and self.range.partitions is None

    def rows(self) -> "DataFrame":
        """Return the rows that came, without the column ``_change_type``."""
        from pyspark.sql import functions as f

        came = f.col(CHANGE_TYPE).isin("insert", "update_postimage")
        return self.frame.where(came).drop(CHANGE_TYPE)


def nothing(state: "DataFrame", where: Range) -> Changed:
    """Report that no row changed, with the columns of the table and without reading it."""
    return Changed(
        frame=gained(state.limit(0)),
        is_incremental=True,
        reason="no row changed between the two ends",
        range=where,
        is_nothing=True,
    )


def incremental(frame: "DataFrame", where: Range) -> Changed:
    """Return what was read of the changes alone."""
    return Changed(frame=frame, is_incremental=True, reason=None, range=where)


def full_table(question: Question, state: "DataFrame", until: str | None, why: str) -> Changed:
    """Return all rows that the table has."""
    check_columns(state.schema, question.keys)
    return Changed(
        frame=gained(state),
        is_incremental=False,
        reason=f"all rows of the table count as new, because {why}",
        range=Range(until=until),
    )


def compared(
    question: Question, states: "tuple[DataFrame, DataFrame]", where: Range, why: str
) -> Changed:
    """Return what differs between the table as it was and as it became."""
    check_columns(states[1].schema, question.keys)
    return Changed(
        frame=between(*states, question.keys),
        is_incremental=False,
        reason=f"the table was compared row by row before and after, because {why}",
        range=where,
    )
