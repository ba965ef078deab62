"""A Spark session as a job has it: its tables are large, unlike those of the control plane."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.platform.spark.java import find_java, use_java
from harness.platform.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROJECT = Path(__file__).resolve().parents[2]


@contextmanager
def session_of_a_job() -> Iterator[tuple["SparkSession", Path]]:
    """Start a session with its own state directory; yield both, and remove the directory after."""
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
    try:
        os.environ["HEARTBEAT_HOME"] = str(folder)
        os.chdir(_PROJECT)
        use_java(find_java(os.environ), os.environ)
        spark = start_session(_PROJECT, folder)
        for name, value in {
            "spark.sql.codegen.wholeStage": "true",
            "spark.sql.codegen.factoryMode": "FALLBACK",
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.shuffle.partitions": "8",
        }.items():
            spark.conf.set(name, value)
        yield spark, folder
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
