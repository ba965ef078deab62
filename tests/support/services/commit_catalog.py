"""A catalog that ratifies the commits of Delta tables, as a workspace's does.

The tables, their staged commits and all that Spark does with them are the real thing. The catalog
is the one that Delta itself is tested with: it keeps in memory which staged commit is the next
version, and publishes none of them before there are a thousand.
"""

from typing import TYPE_CHECKING, Any

from harness.sense.table_locations import SparkTableLocator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG = "spark_catalog"
_PUBLISHES_AFTER = 1000


def create_managed_table(spark: "SparkSession", name: str, columns: str) -> None:
    """Create a table whose commits the session's catalog takes."""
    _builder(spark)
    jvm: Any = spark.sparkContext._jvm
    # Only a workspace's catalog may create such tables, or somebody who tests.
    jvm.System.setProperty("spark.testing", "true")
    try:
        spark.sql(
            f"create table {name} ({columns}) using delta "
            "tblproperties ('delta.feature.catalogManaged' = 'supported')"
        )
    finally:
        jvm.System.clearProperty("spark.testing")


def drop_managed_table(spark: "SparkSession", name: str) -> None:
    """Drop a table, and let the catalog forget its commits, as a workspace's does by itself."""
    jvm: Any = spark.sparkContext._jvm
    log = SparkTableLocator(lambda: spark).locate(name) + "/_delta_log"
    spark.sql(f"drop table {name}")
    catalog = _builder(spark).buildForCatalog(spark._jsparkSession, _CATALOG)
    catalog.dropTable(jvm.org.apache.hadoop.fs.Path(f"file:{log}"))


def _builder(spark: "SparkSession") -> Any:
    jvm: Any = spark.sparkContext._jvm
    package = jvm.org.apache.spark.sql.delta.coordinatedcommits
    provider = package.CatalogOwnedCommitCoordinatorProvider
    if not provider.getBuilder(_CATALOG).isDefined():
        builder = package.InMemoryCommitCoordinatorBuilder(_PUBLISHES_AFTER)
        provider.registerBuilder(_CATALOG, builder)
    return provider.getBuilder(_CATALOG).get()
