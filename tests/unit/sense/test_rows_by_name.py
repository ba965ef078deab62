"""A table that is known by its name alone is read by its name."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from harness.sense.rows import SparkNewRows
from harness.sense.types import NewFiles


@dataclass
class Rows:
    """What a fake session returns for any statement: one row."""

    def createOrReplaceTempView(self, name: str) -> None:
        """Take the rows as a view."""

    def collect(self) -> list[int]:
        return [1]


@dataclass
class FakeSession:
    """Remembers the statements; reads nothing but names."""

    statements: list[str] = field(default_factory=list)
    sparkContext: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(_jsc=object()))
    catalog: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(dropTempView=lambda name: None)
    )

    def newSession(self) -> "FakeSession":
        return self

    def sql(self, statement: str) -> Rows:
        self.statements.append(statement)
        return Rows()


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("sales.orders", "select * from `sales`.`orders` version as of 3"),
        ("main.sales.orders", "select * from `main`.`sales`.`orders` version as of 3"),
        ("`my-db`.`odd.name`", "select * from `my-db`.`odd.name` version as of 3"),
    ],
)
def test_a_name_is_read_through_the_catalog_at_its_version(name: str, statement: str) -> None:
    session = FakeSession()
    files = NewFiles(table_path=name, version=3, files=None, plain=False)

    SparkNewRows(lambda: session).any_row(  # type: ignore[arg-type, return-value]
        files, "select * from sensor_new_data"
    )

    assert session.statements[0] == statement
