"""Which session a process of a workspace has, and that none of this machine takes its place."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest

from harness.errors import ConfigurationError
from harness.platform.spark.session import (
    has_workspace_session,
    prepare_session,
    workspace_session,
)


class Builder:
    """Databricks Connect's, as far as it is used; it has a session or a reason."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason

    def getOrCreate(self) -> str:
        if self.reason:
            raise RuntimeError(self.reason)
        return "of Databricks Connect"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Builder]:
    """Databricks Connect, installed."""
    builder = Builder()
    module = ModuleType("databricks.connect")
    module.__spec__ = SimpleNamespace(name="databricks.connect")  # type: ignore[assignment]
    module.DatabricksSession = SimpleNamespace(builder=builder)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "databricks.connect", module)
    yield builder


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have one."""
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)


NAMED = [{"DATABRICKS_SERVERLESS_COMPUTE_ID": "auto"}, {"DATABRICKS_CLUSTER_ID": "0001-cluster"}]


@pytest.mark.parametrize("environment", NAMED)
def test_databricks_connect_gives_the_session_of_a_laptop(
    connect: Builder, environment: dict[str, str]
) -> None:
    assert has_workspace_session(environment)
    assert str(workspace_session(environment)) == "of Databricks Connect"


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize("environment", NAMED)
def test_compute_that_is_named_is_of_no_use_without_databricks_connect(
    environment: dict[str, str],
) -> None:
    assert not has_workspace_session(environment)
    with pytest.raises(ConfigurationError, match="or install databricks-connect"):
        workspace_session(environment)


def test_databricks_connect_without_compute_is_no_session(connect: Builder) -> None:
    assert not has_workspace_session({})


def test_a_process_on_compute_uses_the_session_there(connect: Builder) -> None:
    assert has_workspace_session({"DATABRICKS_RUNTIME_VERSION": "17.3"})
    assert has_workspace_session({"SPARK_REMOTE": "sc://host"})


def test_a_refusal_of_databricks_connect_is_one_sentence(connect: Builder) -> None:
    connect.reason = "Cluster 0001 is not running.\nsecond line"
    with pytest.raises(
        ConfigurationError, match=r"opens no session: Cluster 0001 is not running; check DATABR"
    ):
        workspace_session(NAMED[1])


class Session:
    """A session with a version and settings."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.settings: dict[str, str] = {}
        self.conf = SimpleNamespace(set=self.settings.__setitem__)


OF_CLUSTERS = [{"DATABRICKS_RUNTIME_VERSION": "16.4"}, {"DATABRICKS_CLUSTER_ID": "0001-cluster"}]


@pytest.mark.parametrize("environment", OF_CLUSTERS)
def test_a_cluster_whose_runtime_is_too_old_is_refused_before_anything_is_sent(
    environment: dict[str, str],
) -> None:
    session = Session("3.5.2")
    with pytest.raises(
        ConfigurationError, match=r"too old: it has Spark 3\.5\.2.*; use Databricks Runtime 17\.3"
    ):
        prepare_session(session, environment)  # type: ignore[arg-type]
    assert session.settings == {}


@pytest.mark.parametrize(
    ("version", "environment"),
    [
        *((version, environment) for version in ("4.0.0", "10.1") for environment in OF_CLUSTERS),
        ("3.5.2", {"DATABRICKS_RUNTIME_VERSION": "client.4.8"}),
        ("3.5.2", {"DATABRICKS_SERVERLESS_COMPUTE_ID": "auto"}),
    ],
)
def test_a_session_of_other_compute_is_set_to_utc_and_ansi_mode(
    version: str, environment: dict[str, str]
) -> None:
    session = Session(version)
    prepare_session(session, environment)  # type: ignore[arg-type]
    assert session.settings == {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
    }


@pytest.mark.usefixtures("no_session")
def test_without_any_of_them_no_spark_of_this_machine_is_started() -> None:
    with pytest.raises(ConfigurationError, match=r"on no compute of a workspace, and no SQL ware"):
        workspace_session({})
