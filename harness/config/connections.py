"""The named connections of ``heartbeat.yml``: addresses in the clear, secrets by reference."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from harness.config.identifiers import relation_from, topic_name_from
from harness.config.secrets import SecretReference
from harness.config.section import Section, Text, key_name
from harness.config.sources import Source
from harness.platform.sql_names import parts_of

#: ``user:secret@host``, Oracle's ``user/secret@host``, and a property whose name suggests a secret.
_SECRET_IN_URL = re.compile(
    r"://[^/@\s]*:[^/@\s]*@|^jdbc:oracle:\w+:[^/@\s]+/[^@\s]*@"
    r"|[?;&:,(][\w.\s-]*(password|passwd|pwd|passphrase|secret|token|api_?key|access_?key)\s*=",
    re.IGNORECASE,
)


def _without_secret(url: str) -> str:
    if _SECRET_IN_URL.search(url):
        raise ValueError(
            "a secret must not stand in the address; give it as password, env:NAME or"
            " secret:scope/key"
        )
    return url


def _absolute(path: str) -> str:
    if not re.match(r"/|[A-Za-z][A-Za-z0-9+.-]*:/", path):
        raise ValueError("allowed is an absolute path or a URI")
    return path


def zone(name: str) -> str:
    """Return the name of a time zone; a ``ValueError`` for any other."""
    if name not in available_timezones():
        raise ValueError("allowed is the name of a time zone, such as Europe/Berlin or UTC")
    return name


def _listed(value: object) -> object:
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(","))
    return tuple(value) if isinstance(value, list) else value


#: A JDBC URL, or one of SQLAlchemy.
DatabaseUrl = Annotated[
    str,
    StringConstraints(pattern=r"^(jdbc:\w+:|[a-z]\w*(\+\w+)?://).+"),
    AfterValidator(_without_secret),
]
HostAndPort = Annotated[str, StringConstraints(pattern=r"^[^\s:/@,]+:\d{1,5}$")]


class KafkaCluster(Section):
    """One Kafka cluster, under the product prefix of its topics."""

    bootstrap_servers: Annotated[
        tuple[HostAndPort, ...], BeforeValidator(_listed), Field(min_length=1)
    ] = Field(description="Brokers as host:port, a list or separated by commas.")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="Kafka's own word."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="Kafka's own word; needed with a SASL protocol."
    )
    user: Text | None = Field(default=None, description="User of a SASL protocol.")
    password: SecretReference | None = Field(default=None, description="Password of that user.")
    ca_file: Text | None = Field(
        default=None, description="Certificates to trust; else the system's."
    )
    timeout_seconds: float = Field(
        default=15, gt=0, le=600, description="A request that takes longer has failed."
    )
    query_messages: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="Most new messages of a topic that a preprocess_query reads in one probe.",
    )

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> Self:
        complete = self.sasl_mechanism and self.user and self.password
        if self.security_protocol.startswith("SASL") and not complete:
            raise ValueError(
                f"{self.security_protocol} needs sasl_mechanism, user and password as well"
            )
        return self


class Database(Section):
    """One database that is queried by SQL."""

    url: DatabaseUrl = Field(
        description="Address as a JDBC or SQLAlchemy URL, without a password in it."
    )
    driver: Text | None = Field(
        default=None,
        description="Class of the JDBC driver by which Spark extracts, where it has another.",
    )
    user: Text | None = Field(default=None, description="User to log in as.")
    password: SecretReference | None = Field(default=None, description="Password of that user.")
    timeout_seconds: float = Field(
        default=30, gt=0, le=3600, description="A query that takes longer has failed."
    )


class JdbcDatabase(Database):
    """A database whose tables are sensed by the largest value of a column."""

    overlap_minutes: int = Field(
        default=10,
        ge=0,
        le=10_080,
        description="Rows this much older than the last are read again.",
    )


class SapSystem(Database):
    """An SAP system whose process chains are sensed by their log."""

    log_table: Annotated[str, StringConstraints(pattern=r"^[\w/]+(\.[\w/]+)?$")] = Field(
        default="RSPCLOGCHAIN", description="Table with the log of the process chains."
    )
    look_back_days: int = Field(
        default=7, ge=1, le=90, description="Chains that ended so long ago are still noticed."
    )
    time_zone: Annotated[str, AfterValidator(zone)] | None = Field(
        default=None, description="Zone of the server's clock, such as Europe/Berlin."
    )


class SapSystems(Section):
    """The two SAP systems, one per sensor_source."""

    sap_bw: SapSystem | None = Field(default=None, description="System of sensor_source sap_bw.")
    sap_b4: SapSystem | None = Field(default=None, description="System of sensor_source sap_b4.")


class IcebergCatalog(Section):
    """A catalog of Iceberg tables: a folder that holds them, or a database that lists them."""

    warehouse: Annotated[Text, AfterValidator(_absolute)] | None = Field(
        default=None, description="Folder of a catalog of Iceberg's type hadoop."
    )
    url: DatabaseUrl | None = Field(
        default=None,
        description="Address of a catalog of Iceberg's type jdbc, without a password in it.",
    )
    driver: Text | None = Field(
        default=None,
        description="Class of the JDBC driver by which Spark extracts, where it has another.",
    )
    user: Text | None = Field(default=None, description="User to log in as.")
    password: SecretReference | None = Field(default=None, description="Password of that user.")
    catalog_name: Text | None = Field(
        default=None, description="Name of the catalog in the database, where it is another."
    )
    timeout_seconds: float = Field(
        default=30, gt=0, le=3600, description="A query that takes longer has failed."
    )

    @model_validator(mode="after")
    def _is_of_one_type(self) -> Self:
        if (self.warehouse is None) == (self.url is None):
            raise ValueError(
                "it needs either warehouse, a folder, or url, a database, and not both"
            )
        return self

    def database(self) -> Database:
        """Return the database of a catalog that is one."""
        return Database(
            url=self.url or "",
            driver=self.driver,
            user=self.user,
            password=self.password,
            timeout_seconds=self.timeout_seconds,
        )


class Connections(Section):
    """Named connections to systems that need more than a path."""

    kafka: Annotated[dict[Text, KafkaCluster], key_name("product")] = Field(
        default_factory=dict, description="Kafka clusters by the product prefix of the topics."
    )
    jdbc: Annotated[dict[Text, JdbcDatabase], key_name("name")] = Field(
        default_factory=dict, description="Databases by the name used in sensor_id."
    )
    sap: SapSystems = Field(default_factory=SapSystems, description="SAP systems.")
    iceberg: Annotated[dict[Text, IcebergCatalog], key_name("catalog")] = Field(
        default_factory=dict,
        description="Catalogs of Iceberg tables by the name used in sensor_id.",
    )

    def missing_for(self, source: str, sensor_id: str) -> str | None:
        """Return the key that an upstream's probe needs and that is not here.

        Args:
            source: A ``sensor_source``.
            sensor_id: What is sensed; one that names nothing needs no connection.
        """
        systems = {"sap_bw": self.sap.sap_bw, "sap_b4": self.sap.sap_b4}
        kept: Mapping[str, Mapping[str, object]] = {
            "kafka": self.kafka,
            "jdbc": self.jdbc,
            "iceberg": self.iceberg,
            "sap": {name: system for name, system in systems.items() if system},
        }
        section, name = _connection_of(source, sensor_id)
        if name is None or name in kept[section]:
            return None
        return f"connections.{section}.{name}"

    def slowest_by_source(self) -> dict[str, float]:
        """Return the largest ``timeout_seconds`` of each source that has a connection."""
        timeouts = {
            Source.KAFKA: [each.timeout_seconds for each in self.kafka.values()],
            Source.JDBC: [each.timeout_seconds for each in self.jdbc.values()],
            Source.ICEBERG_TABLE: [each.timeout_seconds for each in self.iceberg.values()],
            Source.SAP_BW: [self.sap.sap_bw.timeout_seconds] if self.sap.sap_bw else [],
            Source.SAP_B4: [self.sap.sap_b4.timeout_seconds] if self.sap.sap_b4 else [],
        }
        return {source: max(seconds) for source, seconds in timeouts.items() if seconds}


def _connection_of(source: str, sensor_id: str) -> tuple[str, str | None]:
    """Return the section of the connection of an upstream, and its name there."""
    match source:
        case Source.KAFKA:
            topic = topic_name_from(sensor_id)
            return "kafka", topic.product if topic else None
        case Source.JDBC:
            relation = relation_from(sensor_id)
            return "jdbc", relation.connection if relation else None
        case Source.ICEBERG_TABLE:
            parts = () if "/" in sensor_id else parts_of(sensor_id)
            return "iceberg", parts[0] if len(parts) > 1 else None
        case Source.SAP_BW | Source.SAP_B4:
            return "sap", source
        case _:
            return "", None
