"""Reads ``heartbeat.yml`` into ``Settings``; every problem is reported at once, with its line.

It does not fetch secrets: a reference is resolved where it is used.
"""

import copy
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from harness.config.connections import Connections
from harness.config.errors import SettingsError, problems_of
from harness.config.model import (
    ConfigurationFile,
    EngineKeys,
    JobId,
    Jobs,
    JobsTarget,
    LocalJob,
    Logs,
    Maintenance,
    Report,
    Sensing,
)
from harness.config.observing import Alarms, Lineage, Metrics
from harness.config.reference import names_at
from harness.config.secrets import (
    SecretReference,
    SecretStore,
    references_in,
)
from harness.config.sources import Source
from harness.config.yaml import Document, read_yaml
from harness.errors import ConfigurationError
from harness.platform.sql_names import METASTORES, parts_of

CONFIG_VARIABLE = "HEARTBEAT_CONFIG"
HOME_VARIABLE = "HEARTBEAT_HOME"
DEFAULT_CONFIG = "heartbeat.yml"
DEFAULT_HOME = ".heartbeat"

TARGET_VARIABLE = "HEARTBEAT_TARGET"
CATALOG_VARIABLE = "HEARTBEAT_CATALOG"
LOCAL_TARGET = "local"

#: With any of these the Databricks SDK has a workspace, whatever the jobs' target is.
_WORKSPACE_VARIABLES = ("DATABRICKS_HOST", "DATABRICKS_CONFIG_PROFILE")

#: A mistake below one of their names concerns the upstreams of that connection alone.
_NAMED_CONNECTIONS = frozenset(
    {("connections", "kafka"), ("connections", "jdbc"), ("connections", "iceberg")}
)

_Checked = TypeVar("_Checked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of one process; every path is absolute."""

    #: The folder with ``heartbeat.yml`` and ``seeds``.
    project: Path
    #: The configuration file that was read.
    file: Path
    #: The folder of all local state.
    home: Path
    trigger_root: Path
    jobs: Jobs
    #: The jobs of the local Jobs API, from ``commands`` or from the file that it names.
    local_jobs: Mapping[int, LocalJob]
    sensing: Sensing
    engine: EngineKeys
    maintenance: Maintenance
    report: Report
    logs: Logs
    alarms: Alarms
    lineage: Lineage
    metrics: Metrics
    connections: Connections
    #: A Databricks workspace is configured, whose secret scopes can be read.
    has_workspace: bool
    #: The catalog of names that have none, in a workspace; nothing on the local target.
    catalog: str | None = None
    #: Why connections of the file are left out: sentences with file, line and key.
    quarantined: tuple[str, ...] = ()

    def secret_references(self) -> list[tuple[str, SecretReference]]:
        """Return every reference to a secret, each with its key."""
        parts: dict[str, object] = {
            "connections": self.connections,
            "alarms": self.alarms,
            "lineage": self.lineage,
        }
        return [
            (".".join(path), reference)
            for name, part in parts.items()
            for path, reference in references_in(part, (name,))
        ]

    def lacks_command(self, job_id: int) -> bool:
        """Return whether the local Jobs API has nothing to run for a job."""
        is_local = self.jobs.target is JobsTarget.LOCAL
        has_own = job_id in self.local_jobs or self.jobs.local.default_command is not None
        return is_local and not has_own

    def lacks_connection(self, source: str, sensor_id: str) -> str | None:
        """Return the key of the connection that an upstream needs and that is not there."""
        if source == Source.ICEBERG_TABLE and self.has_workspace:
            # It may be a table of the workspace's own catalog.
            return None
        return self.connections.missing_for(source, sensor_id)

    def catalog_without_files(self, source: str, sensor_id: str) -> str | None:
        """Return the catalog that a table is in and that does not list its files."""
        if source != Source.HIVE_TABLE or self.catalog is None or len(parts_of(sensor_id)) != 2:
            return None
        return None if self.catalog.lower() in METASTORES else self.catalog


def target_of(environment: Mapping[str, str]) -> str:
    """Return the output of ``profiles.yml``: ``local`` or ``databricks``."""
    return environment.get(TARGET_VARIABLE, LOCAL_TARGET)


def catalog_of(environment: Mapping[str, str]) -> str | None:
    """Return the catalog of all names that have none; nothing on the local target.

    Raises:
        ConfigurationError: In a workspace it has to be configured: none is there by default.
    """
    if target_of(environment) == LOCAL_TARGET:
        return None
    catalog = environment.get(CATALOG_VARIABLE, "").strip()
    if not catalog:
        raise ConfigurationError(
            f"{CATALOG_VARIABLE} is not set: name the workspace's catalog that Heartbeat's schema"
            " is in"
        )
    return catalog


def load_settings(
    project: Path, environment: Mapping[str, str], *, may_quarantine: bool = False
) -> Settings:
    """Read the configuration of a project.

    Args:
        project: The folder with ``heartbeat.yml`` and ``seeds``; relative paths start from it.
        environment: The variables of the process, for HEARTBEAT_CONFIG and HEARTBEAT_HOME.
        may_quarantine: Leave a connection out that is wrong, instead of stopping; its upstreams
            then fail their probe.

    Raises:
        ConfigurationError: A file is missing or no YAML.
        SettingsError: Keys or values are wrong; all of them are named.
    """
    project = project.absolute()
    file = _under(project, environment.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
    document = read_yaml(file, _display(file, project))
    wrong: tuple[str, ...] = ()
    if may_quarantine:
        document, wrong = _without_wrong_connections(document)
    content = _checked(TypeAdapter(ConfigurationFile), document)
    has_workspace = _has_workspace(content.jobs, environment)
    if not has_workspace:
        _stop_on_secret_scopes(content, document)
    return Settings(
        project=project,
        file=file,
        home=_home(project, environment),
        trigger_root=_under(project, content.trigger_files.root),
        jobs=content.jobs,
        local_jobs=_local_jobs(content.jobs.local.commands, project),
        sensing=content.sensing,
        engine=content.engine,
        maintenance=content.maintenance,
        report=content.report,
        logs=content.logs,
        alarms=content.alarms,
        lineage=content.lineage,
        metrics=content.metrics,
        connections=content.connections,
        has_workspace=has_workspace,
        catalog=environment.get(CATALOG_VARIABLE, "").strip() or None
        if target_of(environment) != LOCAL_TARGET
        else None,
        quarantined=wrong,
    )


def _home(project: Path, environment: Mapping[str, str]) -> Path:
    """Return the folder of the state; in a workspace it is scratch, and so a temporary one."""
    given = environment.get(HOME_VARIABLE)
    if given or target_of(environment) == LOCAL_TARGET:
        return _under(project, given or DEFAULT_HOME)
    names = ("DATABRICKS_HOST", CATALOG_VARIABLE, "HEARTBEAT_SCHEMA")
    place = "\n".join(environment.get(name, "") for name in names)
    name = f"heartbeat-{os.getuid()}-{sha256(place.encode()).hexdigest()[:12]}"
    return Path(tempfile.gettempdir(), name)


def _without_wrong_connections(document: Document) -> tuple[Document, tuple[str, ...]]:
    """Leave out the named connections that are wrong, and return why; other mistakes stay."""
    adapter = TypeAdapter(ConfigurationFile)
    try:
        adapter.validate_json(json.dumps(_without_nulls(document.values, ())), strict=True)
    except ValidationError as error:
        places = {each["loc"][:3] for each in error.errors(include_input=False)}
        named = {loc for loc in places if loc[:2] in _NAMED_CONNECTIONS and len(loc) == 3}
        if places != named:
            return document, ()
        values = copy.deepcopy(document.values)
        for _, kind, name in named:
            values["connections"][kind] = {
                key: value
                for key, value in values["connections"][kind].items()
                if str(key) != str(name)
            }
        return replace(document, values=values), tuple(problems_of(error, document))
    return document, ()


def _has_workspace(jobs: Jobs, environment: Mapping[str, str]) -> bool:
    is_in_one = target_of(environment) != LOCAL_TARGET
    is_named = any(environment.get(name) for name in _WORKSPACE_VARIABLES)
    return jobs.target is JobsTarget.DATABRICKS or is_in_one or is_named


def _stop_on_secret_scopes(content: ConfigurationFile, document: Document) -> None:
    """Refuse unresolvable references, before a connection is needed."""
    problems = [
        f"{document.name}:{document.find(path)[1]}: {'.'.join(path)}: {reference.location} is in a"
        " Databricks workspace, and none is configured; set DATABRICKS_HOST and a way to log in,"
        " or write env:NAME."
        for path, reference in references_in(content)
        if reference.store is SecretStore.SCOPE
    ]
    if problems:
        raise SettingsError(problems)


def _local_jobs(commands: str | dict[int, LocalJob], project: Path) -> dict[int, LocalJob]:
    if not isinstance(commands, str):
        return commands
    file = _under(project, commands)
    document = read_yaml(file, _display(file, project))
    return _checked(TypeAdapter(dict[JobId, LocalJob]), document, ("jobs", "local", "commands"))


def _checked(
    adapter: TypeAdapter[_Checked], document: Document, prefix: tuple[str, ...] = ()
) -> _Checked:
    # As JSON, because only then pydantic's strict mode takes text for an enum, and no text for a
    # number.
    text = json.dumps(_without_nulls(document.values, prefix))
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        # The cause is cut off: it may repeat the value of a secret.
        raise SettingsError(problems_of(error, document, prefix)) from None


def _without_nulls(value: object, path: tuple[str, ...]) -> object:
    """Leave out keys without a value, such as one whose lines are all commented out."""
    if value is None and names_at(path):
        return {}
    if not isinstance(value, dict):
        return value
    known = names_at(path) if any(each is None for each in value.values()) else ()
    return {
        key: _without_nulls(each, (*path, str(key)))
        for key, each in value.items()
        if each is not None or key not in known
    }


def _under(folder: Path, path: str) -> Path:
    return (folder / Path(path).expanduser()).resolve()


def _display(file: Path, project: Path) -> str:
    return str(file.relative_to(project)) if file.is_relative_to(project) else str(file)
