"""The kinds of sources that a control row may name."""

from enum import StrEnum


class Source(StrEnum):
    """The values of ``sensor_source`` that this version can sense."""

    DELTA_TABLE = "delta_table"
    LMU_DELTA_TABLE = "lmu_delta_table"
    KAFKA = "kafka"
    JDBC = "jdbc"
    SAP_BW = "sap_bw"
    SAP_B4 = "sap_b4"
    TRIGGER_FILE = "trigger_file"
    FILE = "file"
    DELTA_UPSTREAM_SENSOR = "delta_upstream_sensor"
    ICEBERG_TABLE = "iceberg_table"
    HIVE_TABLE = "hive_table"


class FirstSight(StrEnum):
    """What the first probe of an upstream that already holds data means."""

    #: It is an event: its consumers need a first run.
    EVENT = "event"
    #: It is only the cursor from which on new data count.
    BASELINE = "baseline"
