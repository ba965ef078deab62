"""Names of Hive tables in a workspace, which has a metastore and catalogs beside it."""

import pytest

from harness.errors import ProbeFailedError
from harness.sense.sources.hive.metastore import names_of


@pytest.mark.parametrize("name", ["hive_metastore.Shop.Orders", "spark_catalog.shop.`orders`"])
def test_the_sessions_own_metastore_may_be_named(name: str) -> None:
    assert names_of(name, "prod-eu") == ("shop", "orders")


@pytest.mark.parametrize("name", ["shop.orders", "prod-eu.shop.orders"])
def test_a_table_of_another_catalog_is_refused_with_the_way_out(name: str) -> None:
    with pytest.raises(ProbeFailedError) as refused:
        names_of(name, "prod-eu")

    assert str(refused.value) == (
        "it is a table of the catalog prod-eu, which lists no files; sense the folder of its files"
        " as file, or let its writer register a change"
    )
