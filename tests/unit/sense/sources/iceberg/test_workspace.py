"""Iceberg tables of a workspace's catalog, over HTTP: the SDK is real, the workspace is a fake."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.platform.storage import Storages
from harness.sense.sources.iceberg.catalog import Catalogs
from harness.sense.sources.iceberg.probe import IcebergProbe
from harness.sense.sources.iceberg.workspace import RestTables
from harness.store.work_lists import Upstream
from tests.support.iceberg_tables import IcebergFolder
from tests.support.watching import Watching
from tests.unit.sense.sources.iceberg.test_iceberg import CatalogDatabase, Questions

ROUTE = "/api/2.1/unity-catalog/iceberg-rest/v1/catalogs/{}/namespaces/{}/tables/{}"


@dataclass
class Workspace:
    """The answers by path, and the paths of the requests."""

    tables: dict[str, IcebergFolder] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    status: int = 200
    words: str = "no"
    #: The only login that is admitted; any, when there is none.
    admitted: str | None = None

    def answer(self, path: str, login: str | None) -> tuple[int, object]:
        self.asked.append(path)
        if self.admitted not in (None, login):
            return 401, {"error_code": "UNAUTHENTICATED", "message": "who are you?"}
        if self.status != 200:
            return self.status, {"error_code": "SAID_NO", "message": self.words}
        if path not in self.tables:
            return 404, {"error_code": "TABLE_DOES_NOT_EXIST", "message": "no such table"}
        newest = self.tables[path].newest
        return 200, {"metadata-location": str(newest), "metadata": json.loads(newest.read_text())}


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    workspace = Workspace()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith("/api/2.1/"):
                status, content = 404, b"{}"
            else:
                status, answer = workspace.answer(self.path, self.headers.get("Authorization"))
                content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DATABRICKS_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("DATABRICKS_TOKEN", "a-token-of-a-test")
    yield workspace
    server.shutdown()
    server.server_close()


@pytest.fixture
def table(workspace: Workspace, tmp_path: Path) -> IcebergFolder:
    table = IcebergFolder(tmp_path / "orders").begin()
    workspace.tables[ROUTE.format("prod-eu", "shop", "orders")] = table
    return table


class Watcher(Watching):
    def __init__(self, sensor_id: str, query: str | None = None) -> None:
        self.upstream = Upstream(
            upstream_id="u",
            source="iceberg_table",
            sensor_id=sensor_id,
            read_type="batch",
            preprocess_query=query,
        )
        catalogs = Catalogs({}, CatalogDatabase(), RestTables("prod-eu"))
        self.probe = IcebergProbe(Storages(), catalogs, Questions())


@pytest.mark.parametrize("name", ["shop.orders", "prod-eu.shop.orders", "`Prod-EU`.Shop.Orders"])
def test_each_snapshot_of_a_table_of_the_workspace_is_one_event(
    workspace: Workspace, table: IcebergFolder, name: str
) -> None:
    watcher = Watcher(name)
    first = table.append()
    seen = [event.snapshot_id for event in watcher.reported()]
    others = [table.append(), table.append()]
    seen += [event.snapshot_id for event in watcher.reported()]

    assert seen == [str(each) for each in (first, *others)]
    assert not watcher.reported()
    assert workspace.asked == [ROUTE.format("prod-eu", "shop", "orders")] * 3


def test_a_workspace_that_refuses_is_a_failure_that_names_the_grants(
    workspace: Workspace, table: IcebergFolder
) -> None:
    workspace.status, workspace.words = 403, "not for you"

    assert Watcher("shop.orders").probe_once().failure == (
        "The Iceberg table shop.orders cannot be sensed: the workspace does not let this identity"
        " read `prod-eu`.`shop`.`orders` as Iceberg; grant SELECT on it and EXTERNAL USE SCHEMA on"
        " its schema: SAID_NO: not for you."
    )


def test_a_table_that_the_workspace_lacks_is_a_failure(workspace: Workspace) -> None:
    failure = Watcher("shop.missing").probe_once().failure or ""

    assert "the Iceberg table `prod-eu`.`shop`.`missing` does not exist, or is not shown" in failure


def test_a_workspace_that_is_down_is_a_failure_and_nothing_is_lost(
    workspace: Workspace, table: IcebergFolder
) -> None:
    watcher = Watcher("shop.orders")
    table.append()
    watcher.probe_once()
    table.append()
    workspace.status = 500
    failure = watcher.probe_once().failure
    workspace.status = 200

    assert (failure is None, len(watcher.reported())) == (False, 1)


def test_a_login_that_is_revoked_is_replaced_at_the_next_probe(
    workspace: Workspace, table: IcebergFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher("shop.orders")
    watcher.probe_once()
    workspace.admitted = "Bearer a-new-token"
    monkeypatch.setenv("DATABRICKS_TOKEN", "a-new-token")
    table.append()
    failure = watcher.probe_once().failure

    assert (failure is None, len(watcher.reported())) == (False, 1)


def test_a_query_over_the_new_rows_is_refused_with_the_way_out(workspace: Workspace) -> None:
    watcher = Watcher("shop.orders", query="select * from sensor_new_data")

    assert "no preprocess_query can read" in (watcher.probe_once().failure or "")
    assert workspace.asked == []
