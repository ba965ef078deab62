"""Names the jars that ``make setup`` fetches beside Delta's, and says which session needs them."""

from collections.abc import MutableMapping

#: The artifact names Spark's version.
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

#: The environment variable with a pattern that finds Iceberg's jars.
ICEBERG_JARS = "HEARTBEAT_ICEBERG_JARS"

#: The one by which ``profiles.yml`` adds jars to those of every session.
MORE_JARS = "HEARTBEAT_MORE_JARS"


def add_iceberg(environ: MutableMapping[str, str]) -> None:
    """Let the session that starts next read Iceberg tables, beside what a person has added."""
    added = [each for each in environ.get(MORE_JARS, "").split(",") if each]
    jars = environ.get(ICEBERG_JARS)
    if jars and jars not in added:
        environ[MORE_JARS] = ",".join((*added, jars))
