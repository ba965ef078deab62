"""What is examined: an installation, as far as it can be read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.config.load import (
    DEFAULT_HOME,
    HOME_VARIABLE,
    LOCAL_TARGET,
    Settings,
    load_settings,
    target_of,
)
from harness.errors import ConfigurationError
from harness.platform.clock import Clock
from harness.platform.mounts import MOUNTS
from harness.store.local import LocalStore
from harness.store.state_dir import StateDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """An installation; its configuration may be wrong and its tables damaged."""

    project: Path
    home: StateDir
    environment: Mapping[str, str]
    clock: Clock
    #: Nothing when the configuration cannot be read; then ``problem`` shows why.
    settings: Settings | None
    problem: str | None = None
    #: The kernel's list of mounts.
    mounts: Path = MOUNTS

    @property
    def is_local(self) -> bool:
        """True when the tables are in the state directory, not in a workspace."""
        return target_of(self.environment) == LOCAL_TARGET

    @property
    def schema(self) -> str:
        """The schema of every table."""
        return self.environment.get("HEARTBEAT_SCHEMA", "heartbeat")

    @property
    def tables(self) -> Path:
        """The folder of the tables."""
        return self.home.warehouse / f"{self.schema}.db"

    @property
    def store(self) -> LocalStore:
        """The tables, for reading."""
        return LocalStore(self.home.warehouse, self.schema)

    @property
    def is_set_up(self) -> bool:
        """True when there is a table."""
        return self.tables.is_dir()


def patient_of(project: Path, environment: Mapping[str, str], clock: Clock) -> Patient:
    """Find the installation, even one whose configuration is wrong."""
    settings: Settings | None = None
    problem = None
    try:
        settings = load_settings(project, environment)
        folder = settings.home
    except ConfigurationError as error:
        problem = str(error)
        folder = (project.absolute() / (environment.get(HOME_VARIABLE) or DEFAULT_HOME)).resolve()
    return Patient(
        project=project,
        home=StateDir(folder=folder),
        environment=environment,
        clock=clock,
        settings=settings,
        problem=problem,
    )
