"""Probes run side by side, and the first that need Spark import PySpark: Python breaks a race."""

import subprocess
import sys

_RACE = """
import threading
from pathlib import Path
from harness.errors import ConfigurationError
from harness.sense.sources.delta.history import SparkTableHistory
from harness.sense.table_locations import SparkTableLocator
from harness.sense.preprocess.run import SparkQuestions
from harness.sense.sources.upstream_sensor.rows import LakeRowReader
from harness.platform.spark.session import start_session

def session():
    return start_session(Path("no such project"), Path("no such home"))

def ask(question):
    begin.wait()
    try:
        question()
    except ConfigurationError:
        pass
    except Exception as error:
        print(repr(error))

questions = [
    lambda: SparkTableLocator(session).locate("sales.orders"),
    lambda: SparkTableHistory(session).newest("sales.orders", 1),
    lambda: SparkQuestions(session).largest(lambda rows: rows, "id"),
    lambda: LakeRowReader(session).read_by_spark("sales.orders"),
    session,
]
begin = threading.Barrier(len(questions))
threads = [threading.Thread(target=ask, args=[each]) for each in questions]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""


def test_threads_that_come_to_pyspark_at_the_same_moment_all_get_all_of_it() -> None:
    command = [sys.executable, "-c", _RACE]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
