"""Fills the placeholders of a preprocess query."""

import re
from decimal import Decimal, InvalidOperation

from harness.config.sources import Source
from harness.errors import ProbeFailedError
from harness.platform.sql_names import column_in_sql, is_column, text_in_sql
from harness.store.work_lists import Upstream

_PLACEHOLDER = re.compile(
    r"""'\?upstream_value'|"\?upstream_value"|`\?upstream_key`|\?upstream_(?:value|key)\b"""
)


def needed_key(upstream: Upstream) -> str | None:
    """Return the upstream's key when its values decide anything."""
    if not upstream.upstream_key:
        return None
    if upstream.source == Source.LMU_DELTA_TABLE:
        return upstream.upstream_key
    query = upstream.preprocess_query or ""
    return upstream.upstream_key if "?upstream_value" in query else None


def rendered(upstream: Upstream) -> str | None:
    """Fill the two placeholders of the upstream's query; ``None`` when it has no query.

    The value stands as a quoted literal, which the engine compares with a column of any type, or
    as ``NULL`` while none is known. Quotes that the query itself has around either are taken away.

    Raises:
        ProbeFailedError: The key is missing or no column name.
    """
    query, key = upstream.preprocess_query, upstream.upstream_key
    if not query:
        return None
    if "?upstream_key" in query and not key:
        raise ProbeFailedError("its preprocess_query uses ?upstream_key, but upstream_key is empty")
    if key and not is_column(key):
        raise ProbeFailedError(f"upstream_key {key!r} is not a column name")
    value = upstream.upstream_value
    literal = "NULL" if value is None else text_in_sql(value)
    column = column_in_sql(key) if key else ""
    return _PLACEHOLDER.sub(
        lambda match: column if "?upstream_key" in match.group() else literal, query
    )


def is_larger(value: str, other: str) -> bool:
    """Compare two values of one column given as text: as numbers if they are, else as text."""
    try:
        return Decimal(value) > Decimal(other)
    except InvalidOperation:
        return value > other
