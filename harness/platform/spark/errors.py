"""What Spark and its gateway raise, and the one door by which threads first come to PySpark.

Two threads that import PySpark at the same moment see each other's half of it; here the second one
waits for the first.
"""

from pyspark.errors import PySparkException

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:
    # A client of Spark Connect has no gateway to a JVM.
    Py4JError = Py4JJavaError = type("Py4JError", (Exception,), {})

__all__ = ["Py4JError", "Py4JJavaError", "PySparkException"]
