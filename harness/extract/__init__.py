"""Extracts for Python: what a source has and bronze has not, appended once, whatever fails."""

from harness.extract.asking import newest
from harness.extract.bronze import Bronze
from harness.extract.delta_versions import DeltaVersions
from harness.extract.differences import ChangeKind, OnChange, SchemaChange, SchemaRules
from harness.extract.evolving import schema_changes
from harness.extract.extracting import Extraction, Options, append, catch_up
from harness.extract.files import Files
from harness.extract.jdbc import Jdbc
from harness.extract.kafka import Kafka
from harness.extract.look_back import Future, LookBack
from harness.extract.source import Batch, Source
from harness.extract.tables import Table
from harness.extract.writing import FileFormat
from harness.settings_connections import Database, KafkaCluster

__all__ = [
    "Batch",
    "Bronze",
    "ChangeKind",
    "Database",
    "DeltaVersions",
    "Extraction",
    "FileFormat",
    "Files",
    "Future",
    "Jdbc",
    "Kafka",
    "KafkaCluster",
    "LookBack",
    "OnChange",
    "Options",
    "SchemaChange",
    "SchemaRules",
    "Source",
    "Table",
    "append",
    "catch_up",
    "newest",
    "schema_changes",
]
