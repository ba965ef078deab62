"""What a new project has as an example: a Delta table, a job that reads it, and a row for both."""

import csv
import io
import json
import shutil
import sys
from pathlib import Path

from harness.controls.header import COLUMNS

JOB_ID = 101
JOB_NAME = "count-orders"
DATA = Path("data") / "orders"
WRITER = "write_orders.py"
_JOB = Path("jobs") / "count_orders.py"

_WRITER_TEXT = '''\
"""Appends three orders to the Delta table data/orders; with --broken one has a negative amount."""

import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

TABLE = Path(__file__).parent / "data" / "orders"


def main() -> None:
    first = DeltaTable(TABLE).count() + 1 if TABLE.exists() else 1
    amounts = [10.0, -3.0 if "--broken" in sys.argv else 20.0, 30.0]
    orders = pa.table({"order_id": [first, first + 1, first + 2], "amount": amounts})
    write_deltalake(TABLE, orders, mode="append")
    print(f"appended orders {first} to {first + 2} to {TABLE}")


main()
'''

_JOB_TEXT = '''\
"""The example of a job: it starts when the orders have changed. Put your own work here."""

import json
import os
import sys

import pyarrow.parquet as pq
from deltalake import DeltaTable

# Set it to True, and start the job again, once a negative amount is right.
ALLOW_NEGATIVE = False


def main() -> None:
    # What has changed since the last run: one event for each commit of the table.
    for event in json.loads(os.environ["HEARTBEAT_EVENTS"]):
        print(f"new: {event['operation_type']}, version {event['snapshot_id']}")
    files = DeltaTable("data/orders").file_uris()
    orders = [order for file in files for order in pq.read_table(file).to_pylist()]
    for order in orders:
        if order["amount"] < 0 and not ALLOW_NEGATIVE:
            sys.exit(f"order {order['order_id']} has the amount {order['amount']}")
    print(f"{len(orders)} orders, {sum(order['amount'] for order in orders):.2f} in all")


main()
'''


def write_example(folder: Path) -> None:
    """Write the scripts, the configuration of the job and its row, and the table's first rows.

    Raises:
        OSError: The folder cannot be written.
    """
    import pyarrow as pa
    from deltalake import write_deltalake

    (folder / _JOB).parent.mkdir()
    (folder / _JOB).write_text(_JOB_TEXT, encoding="utf-8")
    (folder / WRITER).write_text(_WRITER_TEXT, encoding="utf-8")
    orders = pa.table({"order_id": [1, 2, 3], "amount": [10.0, 20.0, 30.0]})
    write_deltalake(folder / DATA, orders)


def controls_text(folder: Path) -> str:
    """Return the controls CSV with one row, for the table in a folder."""
    row = {
        "sensor_source": "delta_table",
        "sensor_id": str(folder / DATA),
        "sensor_read_type": "streaming",
        "asset_description": "Orders of the shop",
        "trigger_job_id": str(JOB_ID),
        "trigger_job_name": JOB_NAME,
        "job_state": "UNPAUSED",
        "dependency_flag": "TRUE",
    }
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerow({name: row.get(name, "") for name in COLUMNS})
    return text.getvalue()


def with_command(settings: str) -> str:
    """Return the text of heartbeat.yml with the command of the job in it."""
    python = "python" if shutil.which("python") == sys.executable else sys.executable
    lines = [
        f"      {JOB_ID}:",
        f"        name: {JOB_NAME}",
        f"        command: {json.dumps([python, str(_JOB)])}",
        "",
    ]
    head, commands, rest = settings.partition("    commands:\n")
    return head + commands + "\n".join(lines) + rest
