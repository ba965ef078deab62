"""A thousand upstreams of each kind: made at once, changed at will, and sensed each on its own.

To add one, write a class with the members of ``Kind`` and name it in ``KINDS``.
"""

from collections.abc import Callable, Mapping

from benchmarks.parts.databases import DatabaseTables, ProcessChains
from benchmarks.parts.place import Kind, Place
from benchmarks.parts.tables_and_folders import DeltaTables, IcebergTables, TriggerFolders
from benchmarks.parts.topics import KafkaTopics

#: In the order of the table that is printed.
KINDS: Mapping[str, Callable[[Place], Kind]] = {
    "delta_table": DeltaTables,
    "trigger_file": TriggerFolders,
    "kafka": KafkaTopics,
    "jdbc": DatabaseTables,
    "sap_bw": ProcessChains,
    "iceberg_table": IcebergTables,
}
