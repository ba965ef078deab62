"""How the columns of an extract fit those of bronze: types alone, no table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from harness.errors import ExtractError
from harness.toolkit.extract import ChangeKind, OnChange, SchemaRules
from harness.toolkit.extract.schema.apply import sql_type
from harness.toolkit.extract.schema.plan import Plan, plan_for
from harness.toolkit.extract.schema.types import fits, widens

TYPES: dict[str, t.DataType] = {
    "byte": t.ByteType(),
    "int": t.IntegerType(),
    "long": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "text": t.StringType(),
    "date": t.DateType(),
    "clock": t.TimestampNTZType(),
    "instant": t.TimestampType(),
    "void": t.NullType(),
    "money": t.DecimalType(10, 2),
    "more": t.DecimalType(12, 3),
    "small": t.DecimalType(4, 0),
    "coarse": t.DecimalType(14, 1),
}


def struct(**fields: "str | t.DataType") -> t.StructType:
    """A struct, each field by the word for its type."""
    return t.StructType(
        [
            t.StructField(name, TYPES[kind] if isinstance(kind, str) else kind)
            for name, kind in fields.items()
        ]
    )


def plan(there: t.StructType, here: t.StructType, *, can_alter_types: bool = True) -> Plan:
    return plan_for(there, here, can_alter_types=can_alter_types)


def told(found: Plan) -> list[str]:
    return [f"{each.kind}: {each.sentence}" for each in found.changes]


def altered(found: Plan) -> list[str]:
    return [
        f"{'add' if each.is_new else 'widen'} {'.'.join(each.path)} {sql_type(each.data_type)}"
        for each in found.alterations
    ]


def written(found: Plan) -> dict[str, tuple[str | None, str, bool]]:
    return {
        each.name: (each.source, each.data_type.simpleString(), each.only_same)
        for each in found.columns
    }


def test_what_is_alike_changes_nothing() -> None:
    found = plan(struct(id="long", at="instant"), struct(id="long", at="instant"))

    assert (found.alterations, found.changes) == ((), ())
    assert written(found) == {"id": ("id", "bigint", False), "at": ("at", "timestamp", False)}


def test_new_columns_are_added_and_missing_ones_filled() -> None:
    found = plan(struct(id="long", gone="text"), struct(id="long", fresh="date"))

    assert altered(found) == ["add fresh date"]
    assert written(found)["gone"] == (None, "string", False)
    assert told(found) == [
        "missing_column: gone was string and is missing: filled with NULL",
        "new_column: fresh was not there and is date: added",
    ]


def test_case_and_order_are_those_of_bronze() -> None:
    found = plan(struct(id="long", Name="text"), struct(NAME="text", id="long"))

    assert altered(found) == []
    assert list(written(found)) == ["id", "Name"]
    assert written(found)["Name"] == ("NAME", "string", False)
    assert {each.kind for each in found.changes} == {ChangeKind.CASE, ChangeKind.ORDER}


@pytest.mark.parametrize(
    ("there", "here", "result"),
    [
        ("int", "long", "widened"),
        ("float", "double", "widened"),
        ("date", "clock", "widened"),
        ("money", "more", "widened"),
        ("long", "int", "as it is"),
        ("more", "money", "as it is"),
        ("text", "int", "as it is"),
        ("money", "byte", "as it is"),
        ("int", "void", "as it is"),
        ("small", "int", "text"),
        ("more", "coarse", "text"),
        ("int", "double", "text"),
        ("int", "text", "text"),
        ("long", "instant", "text"),
        ("clock", "instant", "text"),
        ("double", "long", "text"),
    ],
)
def test_a_type_is_widened_kept_or_beside_its_text(there: str, here: str, result: str) -> None:
    found = plan(struct(x=there), struct(x=here))

    kinds = {"widened": [ChangeKind.WIDENED_TYPE], "text": [ChangeKind.CHANGED_TYPE]}
    # What has never had a value is as if it were missing.
    expected = kinds.get(result, [ChangeKind.MISSING_COLUMN] if here == "void" else [])
    assert [each.kind for each in found.changes] == expected
    assert ("x_text" in written(found)) == (result == "text")
    kept = TYPES[here if result == "widened" else there].simpleString()
    assert written(found)["x"][1] == kept


def test_a_plain_table_gets_text_where_a_delta_table_is_widened() -> None:
    there, here = struct(x="int"), struct(x="long")

    assert altered(plan(there, here)) == ["widen x bigint"]
    plain = plan(there, here, can_alter_types=False)
    assert altered(plain) == ["add x_text string"]
    assert written(plain) == {"x": ("x", "int", True), "x_text": ("x", "string", False)}


def test_a_type_that_changes_back_goes_on_in_its_own_column() -> None:
    there = struct(x="int", x_text="text")

    again = plan(there, struct(x="text"))
    assert (altered(again), written(again)["x_text"]) == ([], ("x", "string", False))
    back = plan(there, struct(x="int"))
    assert (altered(back), told(back)) == ([], [])
    assert written(back) == {"x": ("x", "int", False), "x_text": (None, "string", False)}


def test_fields_are_added_and_widened_wherever_they_are() -> None:
    line = struct(price="int", item="text")
    there = struct(s=struct(a="int"), lines=t.ArrayType(line), m=t.MapType(t.StringType(), line))
    wide = struct(price="long", item="text", **{"the note": "text"})
    here = struct(
        s=struct(b="text", A="int"), lines=t.ArrayType(wide), m=t.MapType(t.StringType(), wide)
    )
    found = plan(there, here)

    assert altered(found) == [
        "add s.b string",
        "add lines.element.the note string",
        "widen lines.element.price bigint",
        "add m.value.the note string",
        "widen m.value.price bigint",
    ]
    assert written(found)["lines"][1] == "array<struct<price:bigint,item:string,the note:string>>"
    plain = plan(there, here, can_alter_types=False)
    assert altered(plain) == [f"add {each}_text string" for each in ("s", "lines", "m")]
    # A struct keeps the fields that it has; where a value might not fit, nothing is cut off.
    assert written(plain)["s"] == ("s", "struct<a:int>", False)
    assert written(plain)["lines"][2] is True


def test_fields_that_are_missing_are_reported_with_the_path_to_them() -> None:
    there = struct(s=struct(a="int", b=struct(c="text", d="int")))
    found = plan(there, struct(s=struct(a="int", b=struct(c="text"))))

    assert told(found) == ["missing_column: s.b.d was int and is missing: filled with NULL"]
    assert altered(found) == []


def test_a_struct_that_becomes_something_else_is_kept_as_text() -> None:
    maps = t.MapType(t.StringType(), t.IntegerType()), t.MapType(t.IntegerType(), t.IntegerType())
    for there, here in [
        (struct(a="int"), t.StringType()),
        (struct(a="int"), struct(a="text")),
        (t.ArrayType(t.IntegerType()), struct(a="int")),
        maps,
    ]:
        found = plan(struct(x=there), struct(x=here))
        assert [each.kind for each in found.changes] == [ChangeKind.CHANGED_TYPE]
        assert altered(found) == ["add x_text string"]


def test_what_never_had_a_value_makes_no_column() -> None:
    found = plan(struct(id="long"), struct(id="long", nothing="void", s=struct(a="void")))

    assert altered(found) == ["add s struct<`a`: string>"]


@pytest.mark.parametrize(
    ("there", "here", "reason"),
    [
        (
            struct(id="long"),
            struct(id="long", ID="long"),
            "id and ID, which no table distinguishes",
        ),
        (struct(x="int"), struct(x="text", X_TEXT="text"), "has a column x_text of its own"),
        (struct(x="int", x_text="int"), struct(x="text"), "would be kept, is int; rename that"),
    ],
)
def test_what_cannot_be_distinguished_stops(
    there: t.StructType, here: t.StructType, reason: str
) -> None:
    with pytest.raises(ExtractError, match=reason):
        plan(there, here)


DIFFERING = {
    ChangeKind.NEW_COLUMN: (struct(a="int"), struct(a="int", b="int")),
    ChangeKind.MISSING_COLUMN: (struct(a="int", b="int"), struct(a="int")),
    ChangeKind.NEW_FIELD: (struct(a=struct(x="int")), struct(a=struct(x="int", y="int"))),
    ChangeKind.WIDENED_TYPE: (struct(a="int"), struct(a="long")),
    ChangeKind.CHANGED_TYPE: (struct(a="int"), struct(a="text")),
    ChangeKind.CASE: (struct(a="int"), struct(A="int")),
    ChangeKind.ORDER: (struct(a="int", b="int"), struct(b="int", a="int")),
}


@pytest.mark.parametrize("kind", ChangeKind)
def test_each_kind_of_difference_stops_where_its_rule_requires_it(kind: ChangeKind) -> None:
    found = plan(*DIFFERING[kind])

    assert [each.kind for each in found.changes] == [kind]
    found.check(SchemaRules(), "bronze.orders")
    with pytest.raises(ExtractError, match=f"bronze.orders was not appended to.*stop at {kind}: "):
        found.check(SchemaRules(**{kind.value: OnChange.STOP}), "bronze.orders")
    others = {each.value: OnChange.STOP for each in ChangeKind if each is not kind}
    found.check(SchemaRules(**others), "bronze.orders")


KINDS = st.sampled_from(sorted(set(TYPES) - {"void"}))
SCHEMAS = st.dictionaries(st.sampled_from("abcde"), KINDS, min_size=1).map(lambda d: struct(**d))


@given(there=SCHEMAS, here=SCHEMAS)
def test_once_bronze_has_followed_it_needs_no_more_for_the_same_extract(
    there: t.StructType, here: t.StructType
) -> None:
    once = plan(there, here)
    after = t.StructType([t.StructField(each.name, each.data_type) for each in once.columns])
    again = plan(after, here)

    assert again.alterations == ()
    assert {each.kind for each in again.changes} <= {
        ChangeKind.MISSING_COLUMN,
        ChangeKind.CHANGED_TYPE,
        ChangeKind.ORDER,
    }
    assert {each.name for each in here} <= {each.name for each in after}


@given(one=KINDS, other=KINDS)
def test_no_type_is_wider_than_one_that_is_wider_than_it(one: str, other: str) -> None:
    narrow, wide = TYPES[one], TYPES[other]

    assert not (widens(narrow, wide) and widens(wide, narrow))
    assert not widens(narrow, wide) or fits(narrow, wide)
