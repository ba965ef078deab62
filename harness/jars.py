"""Names the jars that ``make setup`` fetches beside those of the session, and where they are."""

#: Only a session that reads rows of an Iceberg table loads it. The artifact names Spark's version.
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

#: The environment variable with a pattern that finds Iceberg's jars.
ICEBERG_JARS = "HEARTBEAT_ICEBERG_JARS"
