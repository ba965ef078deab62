"""What a workspace's catalogs show to be wrong in rows of the controls."""

from collections.abc import Collection, Mapping

from harness.controls.catalog import check_tables
from harness.controls.findings import Code, Finding, Severity
from harness.controls.parse import ControlRow
from harness.errors import ProbeFailedError
from harness.sense.catalog_tables import CatalogName, CatalogTable


class Catalogs:
    """Tables by name; a catalog that is not here does not exist."""

    def __init__(self, **kinds: tuple[str, str]) -> None:
        self.kinds = kinds
        self.asked: list[str] = []

    def described(
        self, catalog: str, names: Collection[CatalogName]
    ) -> Mapping[CatalogName, CatalogTable]:
        self.asked.append(catalog)
        if catalog not in ("prod-eu", "hive_metastore"):
            raise ProbeFailedError(
                f"the catalog {catalog} does not exist in the workspace; correct sensor_id"
            )
        found = {name: self.kinds[name.table] for name in names if name.table in self.kinds}
        return {
            name: CatalogTable(kind=kind, format=format_, altered_ms=0, asked_ms=0)
            for name, (kind, format_) in found.items()
        }


CATALOGS = {
    "orders": ("MANAGED", "DELTA"),
    "summary": ("VIEW", ""),
    "clicks": ("EXTERNAL", "PARQUET"),
    "lake": ("MANAGED", "ICEBERG"),
    "crm": ("FOREIGN", "POSTGRESQL"),
}


def found(*sensor_ids: str, source: str = "delta_table") -> list[Finding]:
    rows = [
        ControlRow(line=number, sensor_source=source, sensor_id=each)
        for number, each in enumerate(sensor_ids, start=2)
    ]
    return [*check_tables(rows, Catalogs(**CATALOGS), "prod-eu")]


def test_a_view_and_tables_of_other_formats_are_warnings_that_name_the_right_source() -> None:
    names = ("sales.orders", "sales.summary", "PROD-EU.sales.clicks", "sales.lake", "sales.crm")
    findings = found(*names)
    assert {(each.code, each.severity) for each in findings} == {
        (Code.TABLE_OF_CATALOG, Severity.WARNING)
    }
    said = {each.line: each.message for each in findings}
    assert said.keys() == {3, 4, 5, 6}
    assert said[3].endswith("it is a view, which has no log; name the tables that it reads.")
    assert said[4].endswith("it is a table of parquet; sense it as hive_table.")
    assert said[5].endswith("it is a table of iceberg; sense it as iceberg_table.")
    assert "sense it in its own system as jdbc" in said[6]


def test_a_catalog_is_queried_once_and_one_that_is_not_there_is_one_warning() -> None:
    catalogs = Catalogs(**CATALOGS)
    names = ["sales.orders", "prod-eu.sales.orders", "gone.a.b", "gone.a.c"]
    rows = [
        ControlRow(line=number, sensor_source="lmu_delta_table", sensor_id=each)
        for number, each in enumerate(names)
    ]
    (only,) = check_tables(rows, catalogs, "prod-eu")
    assert only.message.endswith(
        "as lmu_delta_table: the catalog gone does not exist in the workspace; correct sensor_id."
    )
    assert catalogs.asked == ["prod-eu", "gone"]


def test_a_table_that_is_not_shown_is_a_warning_where_others_are_shown() -> None:
    (only,) = found("sales.orders", "sales.ordres")
    assert (only.line, only.column) == (3, "sensor_id")
    assert "the catalog prod-eu does not show it to this login" in only.message
    assert found("hive_metastore.sales.orderz") == []


def test_a_name_of_one_part_is_a_warning() -> None:
    (only,) = found("orders")
    assert "in a workspace its name has two or three parts" in only.message


def test_paths_and_other_sources_are_no_matter_of_a_catalog() -> None:
    assert found("/Volumes/prod-eu/lake/orders", "s3://lake/orders") == []
    assert found("sales.summary", source="hive_table") == []
