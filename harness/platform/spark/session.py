"""Spark's settings, from ``profiles.yml``, and the sessions of processes that are no commands."""

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.errors import ConfigurationError
from harness.platform.sql.refusals import without_grpc
from harness.platform.text import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harness.platform.spark.engine import LocalEngine

#: How far Java compiles: 1 is quick to start, 4 is worth it for hours of use.
JAVA_COMPILER = "HEARTBEAT_JAVA_COMPILER"
#: Compute of a workspace, whose processes have a session of their own, is recognized by it.
ON_COMPUTE = "DATABRICKS_RUNTIME_VERSION"
#: There is a session, or it is named.
_OWN_SESSION = (ON_COMPUTE, "SPARK_REMOTE")
_CLUSTER = "DATABRICKS_CLUSTER_ID"
#: What Databricks Connect is to connect to.
_OF_DATABRICKS_CONNECT = (_CLUSTER, "DATABRICKS_SERVERLESS_COMPUTE_ID")
#: Databricks Runtime 17.3 is the first with long-term support that has it.
_OLDEST_SPARK = 4
#: Both may be set on every kind of compute.
_ALIKE = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
_LONGEST_REASON = 200
#: The control plane is small. It is no setting of the profile: a client of Spark Connect has none.
_MASTER = "local[2]"
#: What keeps the engines of jobs.
_OF_THIS_PROCESS: list["LocalEngine"] = []


def session_settings(project: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Read the local target's ``server_side_parameters``, with ``env_var`` rendered as dbt does.

    Args:
        project: The folder that holds ``profiles.yml``.
        environ: The variables for ``env_var``.

    Raises:
        ConfigurationError: The file is missing or has no such section.
    """
    from jinja2 import Environment
    from ruamel.yaml import YAML

    path = project / "profiles.yml"
    try:
        profile = YAML(typ="safe").load(path.read_text())
        parameters = profile["heartbeat"]["outputs"]["local"]["server_side_parameters"]
    except (OSError, KeyError, TypeError) as error:
        message = f"{path.name}: no heartbeat.outputs.local.server_side_parameters can be read"
        raise ConfigurationError(message) from error

    def env_var(name: str, default: str | None = None) -> str:
        value = environ.get(name, default)
        if value is None:
            raise ConfigurationError(f"profiles.yml: the environment variable {name} is not set")
        return value

    environment = Environment(autoescape=False)
    rendered = {
        key: environment.from_string(str(value)).render(env_var=env_var)
        for key, value in cast(Mapping[str, object], parameters).items()
    }
    return {"spark.master": _MASTER, **rendered}


def engine_settings(
    project: Path, home: Path, *, is_resident: bool = False, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the settings of an engine: the profile's, whatever process requests it.

    Args:
        project: The folder that holds ``profiles.yml``.
        home: The state directory.
        is_resident: A process uses it for hours: it is worth being compiled as well as Java can.
        environ: The variables for ``env_var``.
    """
    variables = {
        **environ,
        "HEARTBEAT_HOME": str(home.absolute()),
        JAVA_COMPILER: "4" if is_resident else "1",
        # The server does not start with fewer frames.
        "HEARTBEAT_JAVA_STACK_DEPTH": "20",
    }
    return session_settings(project, variables)


def start_session(project: Path, home: Path) -> "SparkSession":
    """Give a process such as a job Spark: the engine that is up, else one that ends with it.

    Args:
        project: The folder that holds ``profiles.yml`` and ``log4j2.properties``.
        home: The folder of the warehouse and its metastore.

    Raises:
        StateError: Spark does not start.
    """
    import harness.platform.spark.errors  # noqa: F401 (before the rest of PySpark)
    from harness.platform.spark.engine import LocalEngine, Wanted

    settings = engine_settings(project, home)
    engine = LocalEngine(home, Wanted(project=project, settings=settings, idle_seconds=None))
    _OF_THIS_PROCESS.append(engine)
    return engine.session()


def has_workspace_session(environment: Mapping[str, str]) -> bool:
    """Return whether a Spark session of a workspace is there for this process, or is named.

    Args:
        environment: The variables of the process.
    """
    return any(environment.get(name) for name in _OWN_SESSION) or _is_connected(environment)


def workspace_session(environment: Mapping[str, str]) -> "SparkSession":
    """Return the session of the compute that this process runs on, or of Databricks Connect.

    Args:
        environment: The variables of the process.

    Raises:
        ConfigurationError: There is none; never is a Spark of this machine started instead.
    """
    if _is_connected(environment):
        return _session_of_databricks_connect()
    with suppress(ImportError):
        from pyspark.sql import SparkSession

        if any(environment.get(name) for name in _OWN_SESSION):
            return SparkSession.builder.getOrCreate()
        if (active := SparkSession.getActiveSession()) is not None:
            return active
    raise ConfigurationError(
        "This process is on no compute of a workspace, and no SQL warehouse is named: set"
        " DATABRICKS_HTTP_PATH (or --warehouse) to the path of a warehouse for the commands that"
        " read, or install databricks-connect and set DATABRICKS_SERVERLESS_COMPUTE_ID to auto or"
        " DATABRICKS_CLUSTER_ID to a cluster"
    )


def prepare_session(session: "SparkSession", environment: Mapping[str, str]) -> None:
    """Give a session of a workspace what the models have in dbt's warehouse: UTC and ANSI mode.

    Args:
        session: One that no program but ours uses.
        environment: The variables of the process.

    Raises:
        ConfigurationError: The runtime of its cluster is too old.
    """
    is_of_cluster = environment.get(ON_COMPUTE, "")[:1].isdigit() or environment.get(_CLUSTER)
    # Serverless compute has no runtime; which version it shows is not documented.
    if is_of_cluster and int(str(session.version).partition(".")[0]) < _OLDEST_SPARK:
        raise ConfigurationError(
            f"The runtime of this cluster is too old: it has Spark {session.version}, and the"
            f" models need {_OLDEST_SPARK}.0; use Databricks Runtime 17.3 or later, or serverless"
            " compute"
        )
    for key, value in _ALIKE.items():
        session.conf.set(key, value)


def _is_connected(environment: Mapping[str, str]) -> bool:
    """Return whether Databricks Connect is installed, and what it is to connect to is named."""
    is_named = any(environment.get(name) for name in _OF_DATABRICKS_CONNECT)
    on_compute = environment.get(ON_COMPUTE)
    return is_named and not on_compute and find_spec("databricks.connect") is not None


def _session_of_databricks_connect() -> "SparkSession":
    from databricks.connect import DatabricksSession

    try:
        return cast("SparkSession", DatabricksSession.builder.getOrCreate())
    except Exception as error:
        raise ConfigurationError(
            f"Databricks Connect opens no session: {first_line(error, repr(error)).rstrip('.')};"
            " check DATABRICKS_HOST, the login, and DATABRICKS_CLUSTER_ID or"
            " DATABRICKS_SERVERLESS_COMPUTE_ID"
        ) from error


def message_of(error: Exception) -> str:
    """Return Spark's message for a failure, without the lines that show where it came from."""
    cause = getattr(error, "java_exception", None)
    text = without_grpc(str(error if cause is None else cause.getMessage()).strip())
    return next(iter(text.splitlines()), repr(error)).rstrip(".")
