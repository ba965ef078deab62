"""Reads the partitions of a Hive table that changed, each whole, as they are now.

Such a table keeps no older state: what was in a partition before cannot be determined.
"""

import json
from collections.abc import Sequence
from urllib.parse import quote

from harness.errors import ProbeFailedError
from harness.platform.sql_names import in_sql
from harness.sense.sources.hive.metastore import SparkHiveCatalog
from harness.sense.sources.hive.new_rows import rows_of
from harness.toolkit.changes.answer import Changed, Question, Range, full_table, incremental
from harness.toolkit.changes.macros import macros
from harness.toolkit.changes.net_changes import check_columns, gained

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def changed(question: Question) -> Changed:
    """Return the rows of the partitions that the events of a Hive table name."""
    chain, name = question.chain, question.name
    # Spark lists the files of a table once, and keeps the list.
    question.session.catalog.refreshTable(in_sql(name))
    rows = question.session.table(in_sql(name))
    if chain.partitions is None:
        return full_table(question, rows, None, chain.why or "no partition is named")
    try:
        table = SparkHiveCatalog(lambda: question.session).table(name)
    except ProbeFailedError as error:
        return full_table(question, rows, None, str(error))
    levels = len(table.partition_columns)
    why = macros().call._why_not_picked(chain.partitions, levels)
    if why is not None:
        return full_table(question, rows, None, why)
    check_columns(rows.schema, question.keys)
    names = [_name(table.partition_columns, values) for values in chain.partitions]
    picked = rows_of(name, table, names)(question.session)
    return incremental(gained(picked), Range(partitions=chain.partitions))


def _name(columns: Sequence[str], values: Sequence[str]) -> str:
    levels = zip(columns, values, strict=True)
    return "/".join(f"{column}={_value(text)}" for column, text in levels)


def _value(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        # A producer may have left the quotes out.
        value = text
    if value is None:
        return _NULL_PARTITION
    # 5 and "5" are the same partition.
    return quote(value if isinstance(value, str) else json.dumps(value), safe="")
