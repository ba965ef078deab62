"""What Spark raises is named, whether there is a JVM in the process or not."""

import subprocess
import sys

_WITHOUT_GATEWAY = """
import sys
from pyspark.errors import PySparkException
sys.modules["py4j.protocol"] = None
from harness.platform.spark import errors
from harness.platform.spark.classic_jvm import Py4JError
try:
    raise errors.PySparkException("no")
except Py4JError:
    print("of the gateway")
except errors.SPARK_ERRORS:
    print("of Spark")
"""


def test_a_client_without_a_gateway_to_a_jvm_recognizes_the_errors_of_spark() -> None:
    command = [sys.executable, "-c", _WITHOUT_GATEWAY]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("of Spark\n", "")
