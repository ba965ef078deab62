"""A dbt project whose refresh models receive one batch after another, and their results."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.shop_project import SCHEMA, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[object, ...]]

#: A model returns the rows that the run passes to it.
_MODEL = "{{{{ config(materialized='refresh', meta={{'refresh': {settings!r}}}) }}}}\n{{{{ var('batches')[this.name] }}}}\n"


class Warehouse:
    """The project, its models and their tables."""

    def __init__(
        self,
        spark: "SparkSession",
        folder: Path,
        models: Mapping[str, Mapping[str, object]],
        *,
        profile: str | None = None,
        yml: str = "",
    ) -> None:
        """Write and parse the project, with the profile of another adapter or more config if it is given."""
        self._spark = spark
        texts = {name: _MODEL.format(settings=settings) for name, settings in models.items()}
        self._nothing = dict.fromkeys(models, "select 1")
        self.shop = Shop(folder, texts)
        if profile:
            (folder / "profiles.yml").write_text(profile)
        if yml:
            (folder / "models" / "more.yml").write_text(yml)
        self.shop.parse()

    def receive(self, **batches: str) -> None:
        """Run some models, each over one batch that is given as a query."""
        self.shop._invoke(self.shop.manifest, *self._run_of(batches))

    def refusal(self, **batches: str) -> str:
        """Return what dbt reports of a batch that it refuses."""
        return " ".join(self.shop.refusal(*self._run_of(batches)).split())

    def operate(self, operation: str, **arguments: object) -> str:
        """Run an operation; return what it prints."""
        given = ("run-operation", f"heartbeat.{operation}", "--args", json.dumps(arguments))
        self.shop._invoke(self.shop.manifest, *given, "--vars", json.dumps({"batches": {}}))
        return str(self.shop.said)

    def refused_operation(self, operation: str, **arguments: object) -> str:
        """Return what dbt reports of an operation that it refuses."""
        given = ("run-operation", f"heartbeat.{operation}", "--args", json.dumps(arguments))
        output = self.shop.refusal(*given, "--vars", json.dumps({"batches": {}}))
        return " ".join(output.split())

    def rows(self, table: str, columns: str) -> Rows:
        """Some columns of all rows of a table, in order."""
        found = self._spark.sql(f"select {columns} from {SCHEMA}.{table} order by all nulls first")
        return [tuple(row) for row in found.collect()]

    def states(self, model: str) -> list[str]:
        """The newest state of each batch, in the order of their receipt."""
        query = f"select s_input_id, max_by(state, recorded_at) from {SCHEMA}.{model}_ledger group by 1 order by 1"
        return [state for _, state in self._spark.sql(query).collect()]

    def codes(self, model: str, batch: int) -> dict[str, int]:
        """How many rows of a batch have which code, as the ledger has it."""
        query = (
            f"select max_by(code_counts, recorded_at) from {SCHEMA}.{model}_ledger "
            f"where s_input_id = {batch}"
        )
        return dict(self._spark.sql(query).collect()[0][0] or {})

    def version(self, table: str) -> int:
        """The newest Delta version of a table."""
        found = self._spark.sql(f"describe history {SCHEMA}.{table} limit 1").collect()
        return int(found[0]["version"])

    def _run_of(self, batches: Mapping[str, str]) -> list[str]:
        # No batch is too small to be checked for keys that come twice, and few are enough to fill
        # a commit.
        limits = {"heartbeat_large_batch": 0, "heartbeat_batches_at_once": 4}
        given = json.dumps({"batches": {**self._nothing, **batches}, **limits})
        return ["run", "--select", *batches, "--vars", given]


def batch(columns: str, *rows: Sequence[object]) -> str:
    """Return a query for some rows.

    Args:
        columns: Names and types, such as ``k int, v string``.
        rows: The cells; an instant is so many minutes after midnight of 2026-01-01.
    """
    pairs = [each.split() for each in columns.split(", ")]
    selects = [
        "select " + ", ".join(_cell(value, *pair) for value, pair in zip(row, pairs, strict=True))
        for row in rows
    ]
    nothing = "select " + ", ".join(_cell(None, *pair) for pair in pairs)
    return " union all ".join(selects) or f"select * from ({nothing}) where false"


def minute(column: str) -> str:
    """Return SQL for the minutes of an instant after midnight, as ``batch`` counts them."""
    return f"timestampdiff(minute, timestamp'2026-01-01 00:00:00', {column})"


def _cell(value: object, name: str, kind: str) -> str:
    if value is None:
        text = "null"
    elif kind == "timestamp":
        text = f"timestamp'2026-01-01 00:00:00' + interval {value} minutes"
    else:
        text = f"'{value}'" if isinstance(value, str) else str(value)
    return f"cast({text} as {kind}) as {name}"
