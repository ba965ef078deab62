"""A table that is known by its name alone is read by its name."""

from dataclasses import dataclass, field

import pytest

from harness.sense.new_rows import rows_of
from harness.sense.probe import NewFiles


@dataclass
class FakeSession:
    """Records the statements; reads nothing but names."""

    statements: list[str] = field(default_factory=list)

    def sql(self, statement: str) -> object:
        self.statements.append(statement)
        return object()


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

    rows_of(files)(session)  # type: ignore[arg-type]

    assert session.statements == [statement]
