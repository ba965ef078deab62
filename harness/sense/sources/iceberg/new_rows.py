"""Reads the rows that new snapshots brought, through Spark and Iceberg's runtime."""

from typing import TYPE_CHECKING

from harness.errors import ProbeFailedError
from harness.platform.spark.jars import ICEBERG_PACKAGE
from harness.sense.new_rows import union
from harness.sense.preprocess.run import Rows
from harness.sense.sources.iceberg.snapshots import NewRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ADDED, _DATA = 1, 0


def rows_of(new: NewRows) -> Rows:
    """Return what reads new rows.

    Whatever catalog keeps the table, Spark is given the metadata file that was probed: it needs
    no catalog, and what was committed since plays no part.
    """

    def read(session: "SparkSession") -> "DataFrame":
        need_runtime(session)
        if new.since is None:
            return _at(session, new, new.until)
        # Between two snapshots Iceberg reads the appends, and nothing of the others.
        appended = (
            session.read.format("iceberg")
            .option("start-snapshot-id", str(new.since))
            .option("end-snapshot-id", str(new.until))
            .load(new.metadata)
        )
        return union([appended, *(_written_by(session, new, each) for each in new.overwrites)])

    return read


def need_runtime(session: "SparkSession") -> None:
    """Raise when Spark has no Iceberg.

    It cannot be given to a session that runs: tasks would load its classes a second time.

    Raises:
        ProbeFailedError: It was started without.
    """
    from pyspark.errors import PySparkException

    try:
        _ = session.read.format("iceberg").load().schema
    except PySparkException as error:
        # With the runtime, it is the path that is missing.
        if error.getCondition() == "DATA_SOURCE_NOT_FOUND":
            raise ProbeFailedError(
                "its preprocess_query needs Iceberg's runtime, and Spark was started without it:"
                " start this process again after `make setup`, and on a cluster add the library"
                f" {ICEBERG_PACKAGE}"
            ) from error


def _at(session: "SparkSession", new: NewRows, snapshot: int | None) -> "DataFrame":
    reader = session.read.format("iceberg").option("versionAsOf", str(snapshot))
    return reader.load(new.metadata)


def _written_by(session: "SparkSession", new: NewRows, snapshot: int) -> "DataFrame":
    """Read the data files that one snapshot added, as of that snapshot."""
    from pyspark.sql import functions as f

    entries = (
        session.read.format("iceberg")
        .option("versionAsOf", str(snapshot))
        .load(f"{new.metadata}#entries")
        .where(
            (f.col("status") == _ADDED)
            & (f.col("snapshot_id") == snapshot)
            & (f.col("data_file.content") == _DATA)
        )
    )
    paths = [
        row["path"] for row in entries.select(f.col("data_file.file_path").alias("path")).collect()
    ]
    return _at(session, new, snapshot).where(f.col("_file").isin(paths))
