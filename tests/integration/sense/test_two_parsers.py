"""Queries made up by hypothesis: what the check of the controls lets pass, Spark reads as it does.

The check has a parser of its own, and Spark receives the text that it returns. A name that it
overlooks and Spark does not would be read.
"""

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from harness.controls.queries import check_query
from harness.sense.preprocess.parser import parsed, tokens_of
from harness.sense.preprocess.policy import uncalled, unread
from tests.support.spark_plan import use_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Names of CTEs, of which some are also those of tables.
_OWN = st.sampled_from(["a", "b", "orders", "`Orders`"])
_TABLES = st.one_of(
    st.sampled_from(
        [
            "sensor_new_data",
            "SENSOR_NEW_DATA",
            "`sensor_new_data`",
            "sales.orders",
            "global_temp.a",
            "parquet.`/etc/secrets`",
            "identifier('orders')",
            "range(3)",
            "explode(array(1))",
            "read_files('/etc')",
            "values (1), (2)",
            "table(orders)",
        ]
    ),
    _OWN,
)
_GAPS = st.sampled_from(
    [
        " ",
        "\n",
        "\t",
        "/* , orders */",
        "-- from orders\n",
        "/*+ broadcast(a) */ ",
        # For Spark the first comment goes on in the next line.
        "--\\\n/*\n, orders -- */\n",
    ]
)
_FUNCTIONS = st.sampled_from(
    [
        "upper",
        "max",
        "from_xml",
        "`current_user`",
        "reflect",
        "uuid",
        "Sequence",
        "sales.f",
        "f",
        "count",
    ]
)
_VALUES = st.sampled_from(
    [
        "1",
        "x",
        "a.x",
        "`x y`",
        "'from orders'",
        "'it''s'",
        r"'\''",
        '"orders"',
        "*",
        "current_date",
        "r'\\'",
    ]
)


def _expressions(queries: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        _VALUES,
        lambda inner: st.one_of(
            st.builds("{}({})".format, _FUNCTIONS, inner),
            st.builds(
                "{} {} {}".format, inner, st.sampled_from(["=", "||", "in", "and", "::"]), inner
            ),
            st.builds("({})".format, inner),
            st.builds("transform(items, q -> {})".format, inner),
            st.builds("case when {} then {} end".format, inner, inner),
            st.builds("exists ({})".format, queries),
            st.builds("({})".format, queries),
        ),
        max_leaves=3,
    )


def _selects(queries: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    expressions = _expressions(queries)
    source = st.one_of(
        _TABLES,
        st.builds("({}) as {}".format, queries, _OWN),
        st.builds("{} tablesample (3 rows)".format, _TABLES),
        st.builds("{} version as of 3".format, _TABLES),
    )
    joined = st.builds(
        "{}{}{}{}".format,
        source,
        _GAPS,
        st.sampled_from(
            [", ", "cross join ", "left anti join ", "lateral view explode(x) ", ", lateral "]
        ),
        source,
    )
    plain = st.builds(
        "select{}{}{}from{}{} where {}".format,
        _GAPS,
        expressions,
        _GAPS,
        _GAPS,
        source | joined,
        expressions,
    )
    return st.one_of(
        plain,
        st.builds("from {} |> where {}".format, source, expressions),
        st.builds("with {} as ({}) {}".format, _OWN, queries, plain),
        st.builds("with recursive {}(n) as ({}) {}".format, _OWN, queries, plain),
        st.builds(
            "{} {} {}".format, plain, st.sampled_from(["union all", "except", "intersect"]), queries
        ),
        st.builds("({})".format, queries),
    )


_QUERIES = st.recursive(st.just("select 1 from sensor_new_data"), _selects, max_leaves=4)


def test_spark_reads_no_name_and_calls_no_function_that_the_check_has_overlooked(
    spark: "SparkSession",
) -> None:
    passed = 0

    @settings(max_examples=400, suppress_health_check=list(HealthCheck))
    @given(_QUERIES)
    def same(query: str) -> None:
        nonlocal passed
        if check_query(query):
            return
        found = parsed(query, tokens_of(query))
        assert found is not None
        try:
            use = use_in(spark, found.text)
        except Exception as error:
            # What Spark cannot read, it does not run.
            note(str(error)[:200])
            return
        passed += 1
        assert (unread(use, ()), uncalled(use)) == ([], [])

    same()
    # A generator whose queries are all refused would show nothing.
    assert passed > 20
