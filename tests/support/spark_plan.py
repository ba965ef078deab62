"""What Spark's own parser finds in a query, by its classes: what the product's parser is held to."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.sense.preprocess.policy import Name, Use, name_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Words in the names of the classes whose nodes name what is read.
_NAMING = ("Relation", "Table", "View", "Identifier", "Procedure")
_NAMES_NOTHING = frozenset({"UnresolvedInlineTable"})


def use_in(session: "SparkSession", query: str) -> Use:
    """Return what a query names, apart from its own CTEs and columns; it is only parsed."""
    spark: Any = session
    state = spark._jsparkSession.sessionState()
    analysis = spark._jvm.org.apache.spark.sql.catalyst.analysis
    # Spark itself shows which names are those of CTEs.
    plan = analysis.CTESubstitution.apply(state.sqlParser().parsePlan(query))
    found = _Found()
    for kind, node in _nodes(spark, plan):
        found.note(kind, node)
    own = {name for name in found.functions if len(name) > 1 or _is_spark_s(spark, name[0])}
    strange = {f"calls '{name[0]}', no function of Spark's own" for name in found.functions - own}
    return Use(
        relations=frozenset(found.relations),
        row_makers=frozenset(found.row_makers),
        functions=frozenset(own),
        others=frozenset(found.others | strange),
    )


class _Found:
    def __init__(self) -> None:
        self.relations: set[Name] = set()
        self.row_makers: set[Name] = set()
        self.functions: set[Name] = set()
        self.others: set[str] = set()

    def note(self, kind: str, node: Any) -> None:
        match kind:
            case "UnresolvedRelation":
                self.relations.add(_listed(node.multipartIdentifier()))
            case "UnresolvedTableValuedFunction":
                self.row_makers.add(_listed(node.name()))
            case "UnresolvedFunction":
                self.functions.add(_listed(node.nameParts()))
            case "UnresolvedGenerator":
                self.functions.add(name_of(str(node.name().unquotedString()).split(".")))
            case "ScriptTransformation":
                self.others.add("runs a script; do without it")
            case _ if _names_otherwise(kind):
                self.others.add("names what it reads in a way that cannot be checked")


def _names_otherwise(kind: str) -> bool:
    names = "Unresolved" in kind and any(word in kind for word in _NAMING)
    return names and kind not in _NAMES_NOTHING


def _nodes(spark: Any, plan: Any) -> Iterator[tuple[str, Any]]:
    """Return every node of a plan with the name of its class, in whatever part it stands."""
    from py4j.java_gateway import JavaObject

    is_a = spark._jvm.py4j.reflection.TypeUtil.isInstanceOf
    left: list[Any] = [plan]
    while left:
        part = left.pop()
        if not isinstance(part, JavaObject):
            continue
        if is_a("scala.collection.Iterable", part):
            parts = part.iterator()
        elif is_a("scala.Product", part):
            yield str(part.productPrefix()), part
            parts = part.productIterator()
        else:
            continue
        while parts.hasNext():
            left.append(parts.next())


def _listed(names: Any) -> Name:
    return name_of(names.apply(at) for at in range(names.size()))


def _is_spark_s(spark: Any, name: str) -> bool:
    state = spark._jsparkSession.sessionState()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    return bool(
        state.functionRegistry().functionExists(identifier)
        or state.tableFunctionRegistry().functionExists(identifier)
    )
