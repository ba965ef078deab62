"""Starts the one Spark session, from the settings in ``profiles.yml``; dbt uses the same one.

It is a session of the state directory's engine, or one with a JVM in this process.
"""

import contextlib
import logging
import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.errors import ConfigurationError, StateError
from harness.platform.text import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How far Java compiles: 1 is quick to start, 4 is worth it for a process that stays.
JAVA_COMPILER = "HEARTBEAT_JAVA_COMPILER"
_LONGEST_REASON = 200
#: The control plane is small. It is no setting of the profile: a client of Spark Connect has none.
_MASTER = "local[2]"


def let_java_compile_all(environment: MutableMapping[str, str]) -> None:
    """Let Java compile what runs often as well as it can, by default.

    A process that ends after a minute would spend a third of its time on that in vain.
    """
    environment.setdefault(JAVA_COMPILER, "4")


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
    project: Path, home: Path, *, stays: bool, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the settings of an engine: the profile's, whatever process asks for it.

    Args:
        project: The folder that holds ``profiles.yml``.
        home: The state directory.
        stays: It outlives the command, and is worth being compiled as well as Java can.
        environ: The variables for ``env_var``.
    """
    variables = {
        **environ,
        "HEARTBEAT_HOME": str(home.absolute()),
        # It is the same for all, with every jar.
        JAVA_COMPILER: "4" if stays else "1",
        # The server does not start with fewer frames.
        "HEARTBEAT_JAVA_STACK_DEPTH": "20",
    }
    return session_settings(project, variables)


def start_session(project: Path) -> "SparkSession":
    """Start the session, or return the one that runs already.

    Args:
        project: The folder that holds ``profiles.yml`` and ``log4j2.properties``.

    Raises:
        StateError: The JVM or the embedded metastore does not start.
    """
    import harness.platform.spark.errors  # noqa: F401, I001 (before PySpark, which it lets in)
    from pyspark.sql import SparkSession

    from harness.platform.logs import silence_pyspark_queries

    builder = SparkSession.builder.enableHiveSupport()
    for key, value in session_settings(project).items():
        builder = builder.config(key, value)
    try:
        with _silenced_launch():
            session = builder.getOrCreate()
    except Exception as error:
        reason = first_line(error, repr(error))
        raise StateError(f"Spark does not start: {reason}") from error
    session.sparkContext.setLogLevel("OFF")
    silence_pyspark_queries()
    return session


def cancel_all(session: "SparkSession") -> None:
    """Cancel what runs in a session; callable from any thread."""
    context = getattr(session, "sparkContext", None)
    if context is None:
        session.interruptAll()
    else:
        context.cancelAllJobs()


def unreadable(relation: str, error: Exception) -> StateError | None:
    """Return what to say when Spark cannot read a table; nothing when it has not said so itself.

    A JVM that has died gives no reason, and the next tick has to start a new one.
    """
    from harness.platform.spark.errors import Py4JJavaError, PySparkException

    if not isinstance(error, PySparkException | Py4JJavaError):
        return None
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # The first line of a Java error only says in which call it came.
    informative = [line for line in lines if not line.startswith("An error occurred while")]
    message_of = (informative or lines or [type(error).__name__])[0][:_LONGEST_REASON]
    return StateError(
        f"{relation} cannot be read: {message_of}; `python -m harness doctor` shows what to do"
    )


def cluster_session() -> "SparkSession":
    """Return the session of the cluster that this process runs on."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


@contextlib.contextmanager
def _silenced_launch():  # type: ignore[no-untyped-def]
    """Keep the resolver's and the launcher's lines off the terminal: the JVM inherits fd 2."""
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


log = logging.getLogger(__name__)


def message_of(error: Exception) -> str:
    """Return what Spark says of a failure, without the lines that show where it came from."""
    cause = getattr(error, "java_exception", None)
    text = str(error if cause is None else cause.getMessage()).strip()
    return next(iter(text.splitlines()), repr(error)).rstrip(".")
