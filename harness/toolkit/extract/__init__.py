"""Extracts for Python: what a source has and bronze has not, appended once whatever fails.

In: a source and a bronze table. Out: one partition of bronze for each extraction instant.
Imports ``sense``, ``config`` and ``platform``; no step of a tick.
"""

from harness.config.connections import Database, KafkaCluster
from harness.toolkit.extract.api import Extraction, Options, append, catch_up
from harness.toolkit.extract.lookback import Future, LookBack
from harness.toolkit.extract.schema.apply import schema_changes
from harness.toolkit.extract.schema.plan import ChangeKind, OnChange, SchemaChange, SchemaRules
from harness.toolkit.extract.sources.base import Batch, Source
from harness.toolkit.extract.sources.delta_versions import DeltaVersions
from harness.toolkit.extract.sources.files import Files
from harness.toolkit.extract.sources.jdbc import Jdbc
from harness.toolkit.extract.sources.kafka import Kafka
from harness.toolkit.extract.sources.table import Table
from harness.toolkit.extract.target import Bronze, newest
from harness.toolkit.extract.writer import FileFormat

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
