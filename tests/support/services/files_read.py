"""Counts the files that Spark has opened for a table, from the metrics of its own plans."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FilesRead:
    """Files of one table that queries have read since the last count."""

    def __init__(self, spark: "SparkSession", table: str) -> None:
        self._spark = spark
        self._table = table
        self._seen = -1
        self._counted: set[int] = set()
        self.count()

    def count(self) -> int:
        """Return how many files were read since the last call."""
        context = self._spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        store = self._spark._jsparkSession.sharedState().statusStore()
        executions = store.executionsList()
        found, newest = 0, self._seen
        for index in range(executions.size()):
            number = executions.apply(index).executionId()
            if number > self._seen:
                found += self._read_by(store, number)
                newest = max(newest, number)
        self._seen = newest
        return found

    def _read_by(self, store: object, execution: int) -> int:
        values = store.executionMetrics(execution)
        nodes = store.planGraph(execution).allNodes()
        found = 0
        for node in (nodes.apply(index) for index in range(nodes.size())):
            # Of another table's scan the description may have this name in a filter.
            if "Scan" not in node.name() or not node.name().endswith(f".{self._table}"):
                continue
            for metric in (node.metrics().apply(each) for each in range(node.metrics().size())):
                number = metric.accumulatorId()
                value = values.get(number)
                # A command and the query that it wraps show the same scan.
                if metric.name() != "number of files read" or number in self._counted:
                    continue
                if value.isDefined():
                    self._counted.add(number)
                    found += int(value.get().replace(",", ""))
        return found
