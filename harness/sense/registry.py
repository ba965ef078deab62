"""Maps each source to the probe that senses it: a new source is one file, and one line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.config.connections import Connections
from harness.config.secrets import EnvironmentSecrets, SecretResolver
from harness.config.sources import Source
from harness.errors import ConfigurationError
from harness.sense.probe import Probe, QueryBounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeServices:
    """What probes may need of the world; nothing of it is touched before a probe needs it."""

    session: "Callable[[], SparkSession]"
    trigger_files_root: str
    #: The catalog of names that have none, in a workspace; ``None`` on the local target.
    catalog: str | None = None
    connections: Connections = field(default_factory=Connections)
    #: Fetches the secrets that connections refer to.
    secrets: SecretResolver = field(default_factory=lambda: EnvironmentSecrets({}))
    #: What holds for the queries over new rows.
    queries: QueryBounds = field(default_factory=QueryBounds)


class Registry:
    """Maps each value of ``sensor_source`` to what makes its probe."""

    def __init__(self) -> None:
        self._factories: dict[str, Callable[[ProbeServices], Probe]] = {}

    def add(self, source: str, factory: Callable[[ProbeServices], Probe]) -> None:
        """Register a source.

        Raises:
            ConfigurationError: The source has a probe already.
        """
        if source in self._factories:
            raise ConfigurationError(f"the source {source} has a probe already; name yours another")
        self._factories[source] = factory

    def probes(self, services: ProbeServices) -> Mapping[str, Probe]:
        """Make one probe per distinct factory; sources that share a factory share the probe."""
        made: dict[Callable[[ProbeServices], Probe], Probe] = {}
        for factory in self._factories.values():
            if factory not in made:
                made[factory] = factory(services)
        return {source: made[factory] for source, factory in self._factories.items()}


def known_sources() -> Registry:
    """Return the registry of every source that this version senses."""
    registry = Registry()
    registry.add(Source.DELTA_TABLE, _delta)
    registry.add(Source.LMU_DELTA_TABLE, _delta)
    registry.add(Source.KAFKA, _kafka)
    registry.add(Source.SAP_BW, _sap)
    registry.add(Source.SAP_B4, _sap)
    registry.add(Source.JDBC, _jdbc)
    registry.add(Source.TRIGGER_FILE, _trigger_file)
    registry.add(Source.FILE, _file)
    registry.add(Source.DELTA_UPSTREAM_SENSOR, _upstream_sensor)
    registry.add(Source.ICEBERG_TABLE, _iceberg)
    registry.add(Source.HIVE_TABLE, _hive)
    return registry


def _delta(services: ProbeServices) -> Probe:
    from harness.platform.sql.session import SessionSql
    from harness.platform.storage import Storages
    from harness.sense.catalog_tables import SqlCatalogTables
    from harness.sense.new_rows import SparkNewRows
    from harness.sense.sources.delta.history import SparkTableHistory
    from harness.sense.sources.delta.named_tables import NamedTables
    from harness.sense.sources.delta.probe import DeltaProbe
    from harness.sense.table_locations import SparkTableLocator

    return DeltaProbe(
        Storages(),
        SparkTableLocator(services.session)
        if services.catalog is None
        else NamedTables(services.catalog, SqlCatalogTables(SessionSql(services.session))),
        SparkNewRows(services.session, services.queries),
        SparkTableHistory(services.session),
    )


def _jdbc(services: ProbeServices) -> Probe:
    from harness.sense.sources.jdbc.databases import SqlQueries
    from harness.sense.sources.jdbc.new_rows import SparkTableRows
    from harness.sense.sources.jdbc.probe import JdbcProbe

    queries = SqlQueries(services.secrets)
    rows = SparkTableRows(services.session, queries, services.queries)
    return JdbcProbe(services.connections.jdbc, queries, rows)


def _sap(services: ProbeServices) -> Probe:
    from harness.sense.sources.jdbc.databases import SqlQueries
    from harness.sense.sources.jdbc.new_rows import SparkTableRows
    from harness.sense.sources.sap import SapProbe

    queries = SqlQueries(services.secrets)
    rows = SparkTableRows(services.session, queries, services.queries)
    return SapProbe(services.connections.sap, queries, rows)


def _trigger_file(services: ProbeServices) -> Probe:
    from harness.platform.storage import Storages
    from harness.sense.sources.trigger_file import TriggerFileProbe

    return TriggerFileProbe(
        Storages(),
        services.trigger_files_root,
    )


def _file(services: ProbeServices) -> Probe:
    from harness.platform.storage import Storages
    from harness.sense.preprocess.run import SparkQuestions
    from harness.sense.sources.file.probe import FileProbe

    return FileProbe(
        Storages(),
        SparkQuestions(services.session, services.queries),
    )


def _upstream_sensor(services: ProbeServices) -> Probe:
    from harness.platform.storage import Storages
    from harness.sense.preprocess.run import SparkQuestions
    from harness.sense.sources.delta.history import SparkTableHistory
    from harness.sense.sources.upstream_sensor.probe import UpstreamSensorProbe
    from harness.sense.sources.upstream_sensor.rows import LakeRowReader
    from harness.sense.sources.upstream_sensor.tables import (
        CatalogSensorsTables,
        SensorsTables,
        Tables,
    )
    from harness.sense.table_locations import SparkTableLocator

    reader = LakeRowReader(services.session)
    tables: Tables = SensorsTables(Storages(), SparkTableLocator(services.session), reader)
    if services.catalog is not None:
        history = SparkTableHistory(services.session)
        tables = CatalogSensorsTables(services.catalog, tables, reader, history)
    return UpstreamSensorProbe(tables, SparkQuestions(services.session, services.queries))


def _kafka(services: ProbeServices) -> Probe:
    from harness.sense.preprocess.run import SparkQuestions
    from harness.sense.sources.kafka.connection import connector
    from harness.sense.sources.kafka.filter import Admission
    from harness.sense.sources.kafka.probe import KafkaProbe

    return KafkaProbe(
        connector(services.connections.kafka, services.secrets),
        Admission(SparkQuestions(services.session, services.queries)),
    )


def _iceberg(services: ProbeServices) -> Probe:
    from harness.platform.storage import Storages
    from harness.sense.preprocess.run import SparkQuestions
    from harness.sense.sources.iceberg.catalog import Catalogs
    from harness.sense.sources.iceberg.probe import IcebergProbe
    from harness.sense.sources.iceberg.workspace import RestTables
    from harness.sense.sources.jdbc.databases import SqlQueries

    return IcebergProbe(
        Storages(),
        Catalogs(
            services.connections.iceberg,
            SqlQueries(services.secrets),
            None if services.catalog is None else RestTables(services.catalog),
        ),
        SparkQuestions(services.session, services.queries),
    )


def _hive(services: ProbeServices) -> Probe:
    from harness.platform.storage import Storages
    from harness.sense.preprocess.run import SparkQuestions
    from harness.sense.sources.hive.metastore import SparkHiveCatalog
    from harness.sense.sources.hive.probe import HiveProbe

    return HiveProbe(
        Storages(),
        SparkHiveCatalog(services.session)
        if services.catalog is None
        else SparkHiveCatalog(services.session, services.catalog),
        SparkQuestions(services.session, services.queries),
    )
