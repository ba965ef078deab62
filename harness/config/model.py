"""The keys of ``heartbeat.yml``: their types, bounds, defaults and meanings, each in one place."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from harness.config.connections import Connections
from harness.config.observing import Alarms, Lineage, Metrics
from harness.config.section import Section, Text, key_name
from harness.config.sources import FirstSight, Source

_TABLE = re.compile(r"(?:(?:[^\W\d]\w*|`[^`/:]+`)\.){1,2}(?:[^\W\d]\w*|`[^`/:]+`)")
_SECRET_NAME = re.compile(r"(PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|CREDENTIALS?)$", re.IGNORECASE)


class JobsTarget(StrEnum):
    """Which Jobs API is called."""

    LOCAL = "local"
    DATABRICKS = "databricks"


class PartialSuccess(StrEnum):
    """What a run that ended SUCCESS_WITH_FAILURES counts as."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class SendParameters(StrEnum):
    """Which job parameters a start sends."""

    DECLARED = "declared"
    ALWAYS = "always"
    NEVER = "never"


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


JobId = Annotated[int, Field(ge=1, le=2**63 - 1)]


def _no_uri(path: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path):
        raise ValueError(
            "a folder is allowed, no URI; on Databricks write /Volumes/... or /dbfs/..."
        )
    return path


class TriggerFiles(Section):
    """Where trigger files are put."""

    root: Annotated[Text, AfterValidator(_no_uri)] = Field(
        default="trigger_files",
        description="Folder under which every trigger file's folder lies; on Databricks a volume.",
    )


class LocalJob(Section):
    """One job of the local Jobs API."""

    name: Text | None = Field(default=None, description="Name to show; the job id when left out.")
    command: Annotated[str, StringConstraints(min_length=1)] | tuple[Text, ...] = Field(
        description="What a run does: a text for the shell, or a list of program and arguments."
    )
    cwd: Text | None = Field(
        default=None, description="Folder to run in; the project when left out."
    )
    env: Annotated[dict[str, str], key_name("variable")] = Field(
        default_factory=dict, description="Environment variables on top of those of the process."
    )
    timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        le=604_800,
        description="A run is stopped after this time; never if left out.",
    )
    max_concurrent_runs: int = Field(
        default=1, ge=1, le=1000, description="How many runs may go on at once; more are skipped."
    )

    @model_validator(mode="after")
    def _env_has_no_secret(self) -> Self:
        for name in self.env:
            if _SECRET_NAME.search(name):
                raise ValueError(
                    f"env.{name} must not stand in the file; leave it out, a command gets the"
                    " environment of the process anyway"
                )
        return self


def _commands_kind(value: object) -> str:
    return "file" if isinstance(value, str) else "mapping"


#: The jobs themselves, or the name of a YAML file that holds the same mapping.
Commands = Annotated[
    Annotated[Text, Tag("file")]
    | Annotated[dict[JobId, LocalJob], key_name("job_id"), Tag("mapping")],
    Discriminator(_commands_kind),
]


class LocalJobs(Section):
    """The local Jobs API: what each job runs."""

    commands: Commands = Field(
        default_factory=dict,
        description="Jobs by id, or the name of a YAML file with the same mapping.",
    )
    default_command: Annotated[str, StringConstraints(min_length=1)] | tuple[Text, ...] | None = (
        Field(
            default=None,
            description="Command of a job that commands does not name; else none starts.",
        )
    )
    idle_minutes: int = Field(
        default=30,
        ge=1,
        le=10_080,
        description="The local Jobs API ends after so long without a request.",
    )


_Minutes = Annotated[float, Field(gt=0, le=43_200)]


class Attention(Section):
    """After how long a run that goes on needs a person's attention."""

    queued_minutes: _Minutes = Field(
        default=60, description="A run that waits in a queue for so long needs attention."
    )
    running_minutes: _Minutes = Field(
        default=360, description="A run that goes on for so long needs attention."
    )
    unasked_minutes: _Minutes = Field(
        default=15, description="Minutes without a successful poll before a run needs attention."
    )


class Jobs(Section):
    """Which Jobs API is called, and how hard."""

    target: JobsTarget = Field(default=JobsTarget.LOCAL, description="Jobs API to call.")
    starts_per_tick: int = Field(
        default=50, ge=1, le=10_000, description="Most jobs that one tick starts; the others wait."
    )
    requests_per_second: float = Field(
        default=10, gt=0, le=1000, description="Most requests per second to the Jobs API."
    )
    success_with_failures: PartialSuccess = Field(
        default=PartialSuccess.SUCCEEDED, description="What a run SUCCESS_WITH_FAILURES counts as."
    )
    parameters: SendParameters = Field(
        default=SendParameters.DECLARED,
        description="Job parameters that a start sends: those that the job declares, all or none.",
    )
    attention: Attention = Field(
        default_factory=Attention, description="When a run needs a person's attention."
    )
    local: LocalJobs = Field(default_factory=LocalJobs, description="The local Jobs API.")


SourceName = Annotated[Source, BeforeValidator(_lower)]
ProbeSeconds = Annotated[
    float,
    Field(gt=0, le=3600, description="Time limit of a probe of this source."),
]


def _is_table(name: str) -> str:
    if not _TABLE.fullmatch(name):
        raise ValueError("allowed is schema.table or catalog.schema.table, and no path of files")
    return name


TableName = Annotated[Text, AfterValidator(_is_table)]


class UpstreamOverride(Section):
    """One upstream that differs from the project's default."""

    sensor_source: SourceName = Field(description="Source, as in the controls CSV.")
    sensor_id: Text = Field(description="Id, as in the controls CSV.")
    first_sight: FirstSight = Field(
        description="What the first observation of existing data means."
    )


class Sensing(Section):
    """How upstreams are probed."""

    threads: int = Field(
        default=32, ge=1, le=256, description="Probes that run in parallel, at most."
    )
    look_timeout_seconds: float = Field(
        default=60, gt=0, le=3600, description="Time limit of a probe."
    )
    limits: Annotated[dict[SourceName, ProbeSeconds], key_name("sensor_source")] = Field(
        default_factory=dict, description="Time limits of single sources, in seconds."
    )
    back_off_at_most_seconds: float = Field(
        default=900,
        ge=0,
        le=86_400,
        description="Longest backoff of a failing upstream; 0 probes it in every tick.",
    )
    first_sight: FirstSight = Field(
        default=FirstSight.EVENT,
        description="What the first observation of existing data means.",
    )
    upstreams: tuple[UpstreamOverride, ...] = Field(
        default=(), description="Upstreams that differ from first_sight above."
    )
    queries_may_read: tuple[TableName, ...] = Field(
        default=(),
        description="Tables and views that a preprocess_query may read besides sensor_new_data.",
    )

    @model_validator(mode="after")
    def _each_upstream_once(self) -> Self:
        seen = set()
        for each in self.upstreams:
            key = (each.sensor_source, each.sensor_id)
            if key in seen:
                raise ValueError(
                    f"upstreams names {each.sensor_source} {each.sensor_id!r} twice; once is"
                    " allowed"
                )
            seen.add(key)
        return self

    def first_sight_of(self, sensor_source: str, sensor_id: str) -> FirstSight:
        """Return what the first probe of this upstream means."""
        place = (sensor_source.strip().lower(), sensor_id.strip())
        return self._first_sights.get(place, self.first_sight)

    @cached_property
    def _first_sights(self) -> Mapping[tuple[str, str], FirstSight]:
        return {(each.sensor_source, each.sensor_id): each.first_sight for each in self.upstreams}


class Maintenance(Section):
    """When the ledgers are tidied up."""

    compact_after_commits: int = Field(
        default=200,
        ge=10,
        le=100_000,
        description="Commits to a table after which it is compacted.",
    )
    keep_files_hours: int = Field(
        default=168, ge=1, le=8760, description="Files that compacting replaced are kept so long."
    )


class EngineMode(StrEnum):
    """Where a command of the local target has its Spark."""

    #: In an engine that all commands of the state directory share.
    SHARED = "shared"
    #: In an engine that ends with the command that started it.
    INLINE = "inline"


class EngineKeys(Section):
    """Spark on the local target."""

    mode: EngineMode = Field(
        default=EngineMode.SHARED,
        description="`shared`: the first command that needs Spark starts an engine in the"
        " background, and the next ones use it; `inline`: the engine ends with its command.",
    )
    idle_minutes: float = Field(
        default=30,
        gt=0,
        le=10_080,
        description="A shared engine that no process has used for so long ends.",
    )


class Report(Section):
    """The page that `report` writes."""

    path: Text | None = Field(
        default=None,
        description="Where `tick` and `run` keep the page: a file, one of a volume (/Volumes/...),"
        " or an object of a bucket (s3://..., abfss://..., gs://...); nowhere if left out.",
    )
    days: float = Field(
        default=7, gt=0, le=366, description="Days of history in the page, at most."
    )
    every_seconds: float = Field(
        default=60,
        ge=1,
        le=86_400,
        description="`run` writes the page no more often than this.",
    )
    models: tuple[TableName, ...] = Field(
        default=(),
        description="Refresh models and self-healing models that the page shows, each by its table:"
        " schema.table, in a workspace catalog.schema.table.",
    )


class LogFormat(StrEnum):
    """What a line of the log is."""

    TEXT = "text"
    JSON = "json"


class Logs(Section):
    """The rotating log file."""

    format: LogFormat = Field(
        default=LogFormat.TEXT,
        description="What a line is; HEARTBEAT_LOG_FORMAT comes before it.",
    )

    max_megabytes: int = Field(
        default=10, ge=1, le=1024, description="Size at which a log file is full."
    )
    keep: int = Field(default=5, ge=1, le=100, description="Full log files to keep.")


class ConfigurationFile(Section):
    """The whole file."""

    trigger_files: TriggerFiles = Field(default_factory=TriggerFiles, description="Trigger files.")
    jobs: Jobs = Field(default_factory=Jobs, description="The Jobs API.")
    sensing: Sensing = Field(default_factory=Sensing, description="Looking at upstreams.")
    engine: EngineKeys = Field(default_factory=EngineKeys, description="Spark on the local target.")
    maintenance: Maintenance = Field(default_factory=Maintenance, description="The ledgers.")
    report: Report = Field(default_factory=Report, description="The page that `report` writes.")
    logs: Logs = Field(default_factory=Logs, description="The log file.")
    alarms: Alarms = Field(default_factory=Alarms, description="Who is informed, and when.")
    lineage: Lineage = Field(default_factory=Lineage, description="OpenLineage events.")
    metrics: Metrics = Field(default_factory=Metrics, description="Metrics for Prometheus.")
    connections: Connections = Field(
        default_factory=Connections, description="Systems that need an address or a password."
    )

    @model_validator(mode="after")
    def _limits_are_long_enough(self) -> Self:
        slowest = self.connections.slowest_by_source()
        for source, seconds in self.sensing.limits.items():
            if seconds < slowest.get(source, 0):
                raise ValueError(
                    f"sensing.limits.{source} is {seconds:g} s, less than timeout_seconds of its"
                    f" connections; write at least {slowest[source]:g}, or lower timeout_seconds"
                )
        return self
