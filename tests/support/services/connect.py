"""Lets the processes that a test starts use the Spark of the test process, by Spark Connect.

Each of them has a state directory and a schema of its own, and none of them starts a JVM.
"""

import secrets
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.platform.spark.engine import REMOTE, TOKEN
from harness.platform.spark.session import engine_settings
from tests.support.parsed_project import give_parsed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the Spark of the test process listens."""

    port: int = field(default_factory=_free_port)
    token: str = field(default_factory=secrets.token_hex)

    @property
    def url(self) -> str:
        """The address for PySpark, with the token."""
        return f"sc://localhost:{self.port}/;token={self.token};use_ssl=false"

    def opened_by_spark(
        self, project: Path, home: Path, *, is_resident: bool = False
    ) -> "SparkSession":
        """Start a session of this process, in whose JVM tests may look, and listen here.

        Args:
            project: The folder of the profile.
            home: The state directory.
            is_resident: It is used for so long that Java's second compiler pays.
        """
        from pyspark.sql import SparkSession

        from harness.platform.logs import silence_pyspark_queries

        settings = engine_settings(project, home, is_resident=is_resident)
        # It lives for the whole run: a larger young generation and huge pages save 3 % of its processor time each.
        settings["spark.driver.extraJavaOptions"] += " -Xms1g -Xmn600m -XX:+UseTransparentHugePages"
        settings |= {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.authenticate.token": self.token,
            "spark.connect.session.manager.defaultSessionTimeout": "12h",
            # Most tables are those of one test: what Delta keeps of each would fill the heap.
            "spark.databricks.delta.delta.log.cacheSize": "400",
            # Tests inspect the jobs and the plans that were run last.
            "spark.sql.ui.retainedExecutions": "200",
            "spark.ui.retainedJobs": "200",
            "spark.ui.retainedStages": "200",
        }
        builder = SparkSession.builder.enableHiveSupport()
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        silence_pyspark_queries()
        return session

    def variables(self, spark: "SparkSession", home: Path) -> dict[str, str]:
        """Return the variables for processes of a state directory, with a schema of its own."""
        schema = f"own_{uuid.uuid4().hex[:12]}"
        spark.sql(f"create database {schema} location '{home}/warehouse/{schema}.db'")
        give_parsed(home, schema)
        return {
            "HEARTBEAT_HOME": str(home),
            "HEARTBEAT_SCHEMA": schema,
            REMOTE: f"sc://localhost:{self.port}",
            TOKEN: self.token,
        }
