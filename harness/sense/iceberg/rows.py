"""Reads the rows that new snapshots brought, through Spark and Iceberg's runtime."""

import os
from glob import glob
from typing import TYPE_CHECKING, Any

from harness.errors import LookFailedError
from harness.jars import ICEBERG_JARS, ICEBERG_PACKAGE
from harness.sense.iceberg.follow import NewRows
from harness.sense.questions import Rows
from harness.sense.rows import union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SOURCE = "org.apache.iceberg.spark.source.IcebergSource"
_ADDED, _DATA = 1, 0


def rows_of(new: NewRows) -> Rows:
    """Return what reads new rows.

    Whatever catalog keeps the table, Spark is given the metadata file that was looked at: it needs
    no catalog, and what was committed since plays no part.
    """

    def read(session: "SparkSession") -> "DataFrame":
        use_runtime(session)
        if new.since is None:
            return _at(session, new, new.until)
        # What Iceberg reads between two snapshots are the appends; of others it says nothing.
        appended = (
            session.read.format("iceberg")
            .option("start-snapshot-id", str(new.since))
            .option("end-snapshot-id", str(new.until))
            .load(new.metadata)
        )
        return union([appended, *(_written_by(session, new, each) for each in new.overwrites)])

    return read


def use_runtime(session: "SparkSession") -> None:
    """Let this thread's questions to Spark find Iceberg's runtime, and load it if need be.

    Raises:
        LookFailedError: It is not there.
    """
    spark: Any = session
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    if not _has_runtime(loader):
        jars = glob(os.environ.get(ICEBERG_JARS, ""))
        if not jars:
            raise LookFailedError(
                "Spark lacks the Iceberg runtime that its preprocess_query needs; run `make setup`,"
                f" or add {ICEBERG_PACKAGE} to the cluster's libraries"
            )
        for jar in jars:
            escaped = jar.replace("\\", "\\\\").replace("'", "\\'")
            session.sql(f"add jar '{escaped}'")
    # Spark looks for formats and catalogs where the asking thread does, and a new one does not
    # look among jars that were added later.
    spark._jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)


def _has_runtime(loader: Any) -> bool:
    from py4j.protocol import Py4JJavaError

    try:
        loader.loadClass(_SOURCE)
    except Py4JJavaError:
        return False
    return True


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
