"""Counts the changed rows of one table of those in the run payload.

Run it as a Spark job, with the table and, where they are not in the environment, the events:

    spark-submit examples/incremental/count_rows.py data.pageviews '[{"table": ...}]'

It ends with 4, without starting Spark, when no event is of the table.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.toolkit import changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def count_rows(
    spark: "SparkSession", events: Sequence[changes.ChangeEvent], table: str
) -> dict[str, int]:
    """Return how many rows of the table came, went, and became others."""
    changed = changes.changed_rows(spark, events, table)
    changes.stop_when_nothing(changed)
    counts = changed.frame.groupBy("_change_type").count().collect()
    return {str(row["_change_type"]): int(row["count"]) for row in counts}


def main(arguments: Sequence[str]) -> None:
    """Count the rows of the table that is named first."""
    table, *payload = arguments
    events = changes.read(*payload)
    changes.stop_when_nothing(events, table)

    from pyspark.sql import SparkSession

    counts = count_rows(SparkSession.builder.getOrCreate(), events, table)
    text = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    sys.stdout.write(f"{table}: {text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
