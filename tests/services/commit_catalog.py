"""A catalog that ratifies the commits of Delta tables, as a workspace's does.

The tables, their staged commits and all that Spark does with them are the real thing. The catalog
is the one that Delta itself is tested with: it keeps in memory which staged commit is the next
version, and publishes none of them before there are a thousand.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Makes a new table one of the catalog's.
MANAGED = "tblproperties ('delta.feature.catalogManaged' = 'supported')"
_PUBLISHES_AFTER = 1000


def be_catalog_of_commits(spark: "SparkSession") -> None:
    """Let the session's catalog take commits, for the life of the session."""
    jvm: Any = spark.sparkContext._jvm
    package = jvm.org.apache.spark.sql.delta.coordinatedcommits
    provider = package.CatalogOwnedCommitCoordinatorProvider
    if not provider.getBuilder("spark_catalog").isDefined():
        builder = package.InMemoryCommitCoordinatorBuilder(_PUBLISHES_AFTER)
        provider.registerBuilder("spark_catalog", builder)
