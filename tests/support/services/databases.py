"""Databases that a test can change by any statement, whatever driver they have."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Writer:
    """A second connection to a database, which commits each statement at once."""

    def __init__(self, spark: "SparkSession", url: str) -> None:
        session: Any = spark
        loader = session._jsparkSession.sharedState().jarClassLoader()
        service = session._jvm.java.lang.Class.forName("java.sql.Driver")
        drivers = session._jvm.java.util.ServiceLoader.load(service, loader).iterator()
        while True:
            driver = drivers.next()
            if driver.acceptsURL(url):
                break
        self.connection = driver.connect(url, session._jvm.java.util.Properties())

    def run(self, *statements: str) -> "Writer":
        """Run each statement."""
        for text in statements:
            statement = self.connection.createStatement()
            statement.execute(text)
            statement.close()
        return self

    def begin(self) -> "Writer":
        """Open a transaction that stays open."""
        self.connection.setAutoCommit(False)
        return self

    def commit(self) -> None:
        """End it."""
        self.connection.commit()
        self.connection.setAutoCommit(True)

    def close(self) -> None:
        """End the connection."""
        if not self.connection.getAutoCommit():
            self.connection.rollback()
        self.connection.close()
