"""Lets the processes that a test starts use the Spark of the test process, by Spark Connect.

Each of them has a state directory and a schema of its own, and none of them starts a JVM.
"""

import os
import secrets
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.platform.spark.engine import REMOTE, TOKEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBMIT = "PYSPARK_SUBMIT_ARGS"
_DEPTH = "HEARTBEAT_JAVA_STACK_DEPTH"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the Spark of the test process listens."""

    port: int = field(default_factory=_free_port)
    token: str = field(default_factory=secrets.token_hex)

    @contextmanager
    def opened_by_spark(self) -> Iterator[None]:
        """Let the session that starts inside the block listen here."""
        settings = {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": self.port,
            "spark.connect.authenticate.token": self.token,
            "spark.connect.session.manager.defaultSessionTimeout": "12h",
        }
        listed = [f"--conf {key}={value}" for key, value in settings.items()]
        os.environ[_SUBMIT] = " ".join([*listed, "pyspark-shell"])
        # The server does not start with fewer frames.
        os.environ[_DEPTH] = "20"
        try:
            yield
        finally:
            del os.environ[_SUBMIT], os.environ[_DEPTH]

    def variables(self, spark: "SparkSession", home: Path) -> dict[str, str]:
        """Return the variables for processes of a state directory, with a schema of its own."""
        schema = f"own_{uuid.uuid4().hex[:12]}"
        spark.sql(f"create database {schema} location '{home}/warehouse/{schema}.db'")
        return {
            "HEARTBEAT_HOME": str(home),
            "HEARTBEAT_SCHEMA": schema,
            REMOTE: f"sc://localhost:{self.port}",
            TOKEN: self.token,
        }
