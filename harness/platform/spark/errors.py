"""What Spark raises, and the one module through which threads first import PySpark.

Two threads that import PySpark at the same moment see each other's half of it; here the second one
waits for the first.
"""

from pyspark.errors import PySparkException

from harness.platform.spark.classic_jvm import Py4JError

#: What a statement may raise; nothing else is Spark's own.
SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)

__all__ = ["SPARK_ERRORS", "PySparkException"]
