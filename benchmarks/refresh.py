"""Times refresh models beside what plain dbt does with the same batches, in one Spark session.

A hub of so many rows gets batches of which a tenth are new keys, a quarter have changed and the
rest are unchanged; then batches that change nothing, days that are replaced, one that is taken
out, and a run with nothing to do. A year of days lies in the tables that have days.

    .venv/bin/python benchmarks/refresh.py --rows 10000000 --batch 200000 --batches 20
"""

import argparse
import contextlib
import io
import json
import re
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.parts.session_of_a_job import session_of_a_job  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 365
_PROFILE = """
bench:
  target: dev
  outputs: {dev: {type: spark, method: session, host: local, schema: bench, threads: 1}}
"""
_DBT_PROJECT = """
name: bench
version: "1.0"
config-version: 2
profile: bench
flags: {send_anonymous_usage_stats: false}
models: {+file_format: delta}
snapshots: {+file_format: delta}
"""
_KEY = {
    "type": "key",
    "key": "k",
    "updated_at": "changed_at",
    "batch_by": "step",
    "exclude_from_cdc": ["step"],
}
_ALONE = {**_KEY, "history": False}
_BY_DAY = {"type": "timestamp", "column": "day"}
MODELS = {
    "models/by_key.sql": (
        f"{{{{ config(materialized='refresh', meta={{'refresh': {_KEY!r}}}) }}}}\n"
        "select * from bench.batch\n"
    ),
    "models/by_key_alone.sql": (
        f"{{{{ config(materialized='refresh', meta={{'refresh': {_ALONE!r}}}) }}}}\n"
        "select * from bench.batch\n"
    ),
    "models/by_merge.sql": (
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='k') }}\n"
        "select * from bench.batch\n"
    ),
    "models/by_merge_with_vectors.sql": (
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='k', "
        "tblproperties={'delta.enableDeletionVectors': 'true'}) }}\n"
        "select * from bench.batch\n"
    ),
    "models/by_day.sql": (
        "{{ config(materialized='refresh', partition_by='day', meta={'refresh': "
        f"{_BY_DAY!r}"
        "}) }}\n"
        "select * from bench.batch\n"
    ),
    "models/by_overwrite.sql": (
        "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
        "partition_by='day') }}\n"
        "select * from bench.batch\n"
    ),
    "snapshots/by_snapshot.sql": (
        "{% snapshot by_snapshot %}\n"
        "{{ config(unique_key='k', strategy='timestamp', updated_at='changed_at') }}\n"
        "select * from bench.batch\n"
        "{% endsnapshot %}\n"
    ),
}
KEYED = {
    "refresh": "by_key",
    "without history": "by_key_alone",
    "merge": "by_merge",
    "merge with vectors": "by_merge_with_vectors",
    "snapshot": "by_snapshot",
}
#: Those that get all batches; the others get the first few, which are enough for a ratio.
ALWAYS, FEW = ("refresh", "merge"), 5
#: How the statements begin of which a batch of keys mainly consists.
STATEMENTS = {
    "codes and archive": "insert into bench.by_key_batches",
    "history": "merge into bench.by_key_history",
    "hub": "merge into bench.by_key as",
}
DAILY = {"refresh": "by_day", "insert_overwrite": "by_overwrite"}


def main() -> None:
    """Make the tables and time what is done to them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=20)
    options = parser.parse_args()
    with session_of_a_job() as (spark, folder):
        bench = Bench(spark, folder, options.rows, options.batch)
        bench.fill()
        bench.keyed(options.batches)
        bench.one_kind("only new keys", new=1.0, changed=0)
        bench.one_kind("26 % changed, no new key", new=0, changed=0.26)
        bench.one_kind("mixed, keys together", new=0.10, changed=0.26, together=True)
        bench.unchanged()
        bench.waiting()
        bench.daily()
        bench.taken_out()
        bench.nothing()


class Bench:
    """A dbt project with this one as its package, and the batches that it gets."""

    def __init__(self, spark: "SparkSession", folder: Path, rows: int, batch: int) -> None:
        self._spark = spark
        self._folder = folder / "project"
        self._rows = rows
        self._batch = batch
        #: Keys that are there, and how often something has changed.
        self._keys = rows
        self._step = 0
        #: What one mixed batch takes alone, in seconds.
        self._alone = 0.0
        files = {
            "dbt_project.yml": _DBT_PROJECT,
            "profiles.yml": _PROFILE,
            "packages.yml": f"packages:\n  - local: {PROJECT}\n",
            **MODELS,
        }
        for name, text in files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._manifest: Any = None
        self._dbt("deps")
        self._manifest = self._dbt("parse").result

    def fill(self) -> None:
        """Bring the first batch, which is the whole table, into each model."""
        spark = self._spark
        spark.sql("create schema if not exists bench")
        self._hand(
            self._rows_of(f"select id as k, id % {DAYS} as d, 0 as v from range({self._rows})")
        )
        for name, model in (*KEYED.items(), *DAILY.items()):
            self._tell(f"{self._rows:,} rows at first", name, self._run(model), model)

    def keyed(self, batches: int) -> None:
        """Bring batches of new, changed and unchanged rows."""
        took: dict[str, list[float]] = {name: [] for name in KEYED}
        parts: dict[str, list[float]] = {name: [] for name in STATEMENTS}
        for number in range(batches):
            self._hand(self._mixed(new=0.10, changed=0.26))
            for name, model in KEYED.items():
                if number < FEW or name in ALWAYS:
                    took[name].append(self._run(model))
                if name == "refresh":
                    for part, seconds in parts.items():
                        seconds.append(self._statement(STATEMENTS[part]))
        self._tell_keyed(took, parts)
        self._alone = statistics.median(took["refresh"][1:])

    def _tell_keyed(self, took: dict[str, list[float]], parts: dict[str, list[float]]) -> None:
        for name, seconds in took.items():
            median = statistics.median(seconds[1:])
            stable = seconds[-1] / seconds[1]
            self._tell(
                "10 % new, 26 % changed (median)",
                name,
                median,
                f"{len(seconds)} batches, last / second {stable:.2f}",
            )
        for part, seconds in parts.items():
            self._tell("  of it", part, statistics.median(seconds[1:]))
        for name in ("merge", "merge with vectors", "snapshot"):
            beside = took["refresh"][1 : len(took[name])]
            self._ratio(f"refresh / {name}", beside, took[name][1:])
        for name in ("merge", "merge with vectors"):
            beside = took["without history"][1:]
            self._ratio(f"without history / {name}", beside, took[name][1 : 1 + len(beside)])

    def one_kind(self, what: str, *, new: float, changed: float, together: bool = False) -> None:
        """Bring batches for which a strategy may have less to do."""
        took: dict[str, list[float]] = {"refresh": [], "merge": []}
        codes = []
        for _ in range(3):
            self._hand(self._mixed(new=new, changed=changed, together=together))
            for name, seconds in took.items():
                seconds.append(self._run(KEYED[name]))
            codes.append(self._statement(STATEMENTS["codes and archive"]))
        for name, seconds in took.items():
            self._tell(f"{what} (median)", name, statistics.median(seconds))
        self._tell("  of it", "codes and archive", statistics.median(codes))
        self._ratio("refresh / merge", took["refresh"], took["merge"])

    def unchanged(self) -> None:
        """Bring a batch that contains nothing new, each time by other rows."""
        took: dict[str, list[float]] = {"refresh": [], "merge": []}
        before = self._version("by_key"), self._version("by_key_history")
        for _ in range(3):
            self._hand(self._mixed(new=0, changed=0))
            for name, seconds in took.items():
                seconds.append(self._run(KEYED[name]))
        after = self._version("by_key"), self._version("by_key_history")
        commits = sum(after) - sum(before)
        for name, seconds in took.items():
            reported = f"{commits} commits to hub and history" if name == "refresh" else ""
            self._tell("nothing changed (median)", name, statistics.median(seconds), reported)
        self._ratio("merge / refresh", took["merge"], took["refresh"])

    def waiting(self, batches: int = 5) -> None:
        """Bring several batches that wait together."""
        self._hand(*(self._mixed(new=0.10, changed=0.26) for _ in range(batches)))
        took = self._run("by_key")
        alone = f"{batches} alone would take {batches * self._alone:.2f}"
        self._tell(f"{batches} such batches at once", "refresh", took, alone)

    def daily(self) -> None:
        """Replace one day of the year."""
        took: dict[str, list[float]] = {name: [] for name in DAILY}
        for day in (100, 101, 102):
            self._hand(self._day(day))
            for name, model in DAILY.items():
                before = self._version(model)
                took[name].append(self._run(model))
                commits = self._version(model) - before
        for name, seconds in took.items():
            self._tell("one day of 365 (median)", name, statistics.median(seconds))
        beyond = self._rewritten("by_day", 102)
        self._tell(
            "one day of 365", "refresh", 0, f"{commits} commit, {beyond} files of other days"
        )

    def taken_out(self) -> None:
        """Unload a batch of a day, and one of keys."""
        for model, batch in (("by_day", 3), ("by_key", 3)):
            size, before = self._bytes(model), self._version(model)
            took = self._timed(
                "run-operation",
                "heartbeat.refresh_unload",
                "--args",
                json.dumps({"model": model, "input_ids": [batch]}),
            )
            written = self._written(model, before)
            share = 100 * written / size
            self._tell(
                "one batch unloaded", model, took, f"{share:.1f} % of the hub's bytes written"
            )

    def nothing(self) -> None:
        """Run with a batch that was received before."""
        self._run("by_key")
        took = [self._run("by_key") for _ in range(3)]
        self._tell("a batch received before", "refresh", statistics.median(took), "")

    def _hand(self, *batches: str) -> None:
        """Put batches where the models read them."""
        query = " union all ".join(batches)
        self._spark.sql(f"create or replace table bench.batch using delta as {query}")

    def _rows_of(self, query: str) -> str:
        """Make the rows of a batch of keys `k`, their days `d` and how often they changed, `v`."""
        self._step += 1
        return f"""
            select
                k,
                timestamp'2025-01-01' + make_interval(0, 0, 0, cast(d as int)) as day,
                timestamp'2026-01-01' + make_interval(0, 0, 0, 0, 0, cast(v as int)) as changed_at,
                concat('name ', k, ' ', v) as name,
                k * 7 % 1000 + v as amount,
                cast(k as double) / 3 as price,
                concat('street ', k % 9973) as street,
                k % 17 = 0 as is_active,
                {self._step} as step
            from ({query})"""

    def _mixed(self, *, new: float, changed: float, together: bool = False) -> str:
        """Make a batch whose keys lie all over the table, or together at its end."""
        fresh = int(self._batch * new)
        there = self._batch - fresh
        every = 1 if together else max(self._rows // max(there, 1), 1)
        edge = int(there * (changed / (1 - new) if new < 1 else 0))
        # An unchanged row repeats what the table was filled with: only these are taken again.
        offset = self._rows - there if together else self._step % every
        first, self._keys = self._keys, self._keys + fresh
        return self._rows_of(
            f"""select k, k % {DAYS} as d, v
            from (
                select id * {every} + {offset} as k, if(id < {edge}, {self._step}, 0) as v
                from range({there})
            )
            union all
            select {first} + id, id % {DAYS}, {self._step} from range({fresh})"""
        )

    def _day(self, day: int) -> str:
        return self._rows_of(
            f"select id * {DAYS} + {day} as k, {day} as d, {self._step} as v "
            f"from range({self._rows // DAYS})"
        )

    def _run(self, model: str) -> float:
        command = "snapshot" if model == "by_snapshot" else "run"
        return self._timed(command, "--select", model)

    def _timed(self, *arguments: str) -> float:
        began = time.perf_counter()
        self._dbt(*arguments)
        return time.perf_counter() - began

    def _statement(self, begins: str) -> float:
        """Return how many seconds a statement of the last run took, as dbt's log has it."""
        log = (self._folder / "logs" / "dbt.log").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"SQL status: OK in ([\d.]+) seconds", log[log.rindex(begins) :])
        return float(found.group(1)) if found else 0.0

    def _dbt(self, *arguments: str) -> Any:
        from dbt.cli.main import dbtRunner

        places = ["--project-dir", str(self._folder), "--profiles-dir", str(self._folder)]
        with contextlib.redirect_stdout(io.StringIO()) as output:
            result = dbtRunner(manifest=self._manifest).invoke([*arguments, *places])
        if not result.success:
            raise SystemExit(f"{output.getvalue()[-3000:]}{result.exception or ''}")
        return result

    def _version(self, table: str) -> int:
        rows = self._spark.sql(f"describe history bench.{table} limit 1").collect()
        return int(rows[0]["version"])

    def _bytes(self, table: str) -> int:
        return int(self._spark.sql(f"describe detail bench.{table}").collect()[0]["sizeInBytes"])

    def _actions(self, table: str, version: int) -> list[dict[str, Any]]:
        place = self._spark.sql(f"describe detail bench.{table}").collect()[0]["location"]
        log = Path(str(place).removeprefix("file:")) / "_delta_log" / f"{version:020d}.json"
        return [json.loads(each) for each in log.read_text().splitlines()]

    def _rewritten(self, table: str, day: int) -> int:
        """Count the files of other days that the newest commit has touched."""
        wanted = self._spark.sql(f"select timestamp'2025-01-01' + interval {day} days").collect()[
            0
        ][0]
        touched = [
            each.get("add") or each["remove"]
            for each in self._actions(table, self._version(table))
            if "add" in each or "remove" in each
        ]
        return sum(f"{wanted:%Y-%m-%d}" not in each["partitionValues"]["day"] for each in touched)

    def _written(self, table: str, since: int) -> int:
        """Return how many bytes of new files commits added; one with a new vector comes again."""
        size = 0
        for version in range(since + 1, self._version(table) + 1):
            actions = self._actions(table, version)
            there = {each["remove"]["path"] for each in actions if "remove" in each}
            added = [each["add"] for each in actions if "add" in each]
            size += sum(each["size"] for each in added if each["path"] not in there)
        return size

    @staticmethod
    def _tell(what: str, name: str, seconds: float, more: str = "") -> None:
        print(f"{what:<34}{name:<18}{seconds:>9.2f}  {more}", flush=True)

    def _ratio(self, what: str, one: list[float], other: list[float]) -> None:
        ratio = statistics.median(one) / statistics.median(other)
        print(f"{'':<34}{what:<18}{ratio:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
