"""The two tables that people and other products read, and how a tick brings them up to date.

Each has a model with the rows that it is to have. dbt creates the tables; a tick merges what
differs in one commit, without dbt, as the store of the target does it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """A table that shows the rows of a model."""

    name: str
    #: A view; it may have further columns.
    model: str
    #: The columns that distinguish its rows.
    key: tuple[str, ...]
    #: All columns, in the order of the documents.
    columns: tuple[str, ...]
    #: A model that reads this one and has each of its rows in a column, and that column's name.
    within: tuple[str, str] | None = None

    @property
    def is_same_row(self) -> str:
        """The condition under which a row that is published and a wanted one have one key."""
        return " and ".join(f"published.{name} = wanted.{name}" for name in self.key)

    @property
    def has_changed(self) -> str:
        """The condition under which two rows of one key differ."""
        return " or ".join(
            f"(published.{name} is distinct from wanted.{name})"
            for name in self.columns
            if name not in self.key
        )


CONTROL_TABLE = PublicTable(
    name="heartbeat_control",
    model="int_control_rows",
    key=("sensor_source", "sensor_id", "trigger_job_id"),
    columns=(
        "sensor_source",
        "sensor_id",
        "sensor_read_type",
        "asset_description",
        "upstream_key",
        "preprocess_query",
        "latest_event_fetched_timestamp",
        "trigger_job_id",
        "trigger_job_name",
        "status",
        "status_change_timestamp",
        "job_start_timestamp",
        "job_end_timestamp",
        "job_state",
        "dependency_flag",
    ),
    within=("int_sensor_rows", "control_row"),
)
SENSORS_TABLE = PublicTable(
    name="sensors",
    model="int_sensor_rows",
    key=("sensor_id",),
    columns=(
        "sensor_id",
        "assets",
        "status",
        "status_change_timestamp",
        "checkpoint_location",
        "upstream_key",
        "upstream_value",
    ),
)
PUBLIC_TABLES = (CONTROL_TABLE, SENSORS_TABLE)


def wanted_rows(
    tables: Sequence[PublicTable], read: Callable[[str], list[dict[str, Any]]]
) -> Mapping[str, list[dict[str, Any]]]:
    """Return the rows that public tables are to have, by the name of the table.

    Args:
        tables: The tables.
        read: Reads every row of a model; each is read once, however many need it.
    """
    places = {table.name: table.within or (table.model, None) for table in tables}
    found = {model: read(model) for model in {model for model, _ in places.values()}}
    return {
        name: [row[column] for row in found[model]] if column else found[model]
        for name, (model, column) in places.items()
    }
