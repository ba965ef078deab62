"""Finds JDBC drivers where Spark has its jars (``spark.jars``, ``--jars``).

Neither ``Class.forName`` nor ``DriverManager`` looks there before Spark itself has used a driver.
"""

from typing import Any

from harness.secrets import masked
from harness.sense.jdbc.queries import DatabaseDownError
from harness.settings_connections import Database


def driver_of(spark: Any, database: Database) -> Any:
    """Return a ``java.sql.Driver`` for a database: the class that it names, or any that fits.

    Raises:
        DatabaseDownError: There is none.
    """
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    if database.driver:
        return _named(spark, loader, database.driver)
    jvm = spark._jvm
    service = jvm.java.lang.Class.forName("java.sql.Driver")
    drivers = jvm.java.util.ServiceLoader.load(service, loader).iterator()
    while drivers.hasNext():
        driver = drivers.next()
        if driver.acceptsURL(database.url):
            return driver
    raise DatabaseDownError(
        f"no JDBC driver takes {database.url.split('//')[0]}; add its jar to spark.jars in"
        " profiles.yml"
    )


def _named(spark: Any, loader: Any, name: str) -> Any:
    from py4j.protocol import Py4JJavaError

    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    try:
        found = loader.loadClass(name)
    except Py4JJavaError as error:
        raise DatabaseDownError(
            f"there is no JDBC driver {name}; add its jar to spark.jars in profiles.yml"
        ) from error
    constructor = found.getDeclaredConstructor(gateway.new_array(jvm.java.lang.Class, 0))
    return constructor.newInstance(gateway.new_array(jvm.java.lang.Object, 0))


def first_line(text: str) -> str:
    """Return what a Java error says first, without secrets and without a full stop."""
    lines = text.strip().splitlines()
    return masked(lines[0].strip().rstrip(".")) if lines else "no reason was given"
