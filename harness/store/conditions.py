"""Words the conditions of a read in SQL, for Spark and for the engine of the deltalake package."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from harness.platform.sql_names import in_sql, literal

#: Column, operator, value.
Condition = tuple[str, str, object]

_OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine writes names and values."""

    name: Callable[[str], str]
    literal: Callable[[object], str]

    def select(self, table: str, where: Sequence[Condition], columns: Sequence[str]) -> str:
        """Return the statement that reads the rows that meet every condition.

        Args:
            table: The table, as the engine writes it.
            where: The conditions.
            columns: The wanted columns; without any, all.

        Raises:
            ValueError: An operator is unknown.
        """
        wanted = ", ".join(map(self.name, columns)) or "*"
        statement = f"select {wanted} from {table}"
        if where:
            statement += f" where {' and '.join(map(self._condition, where))}"
        return statement

    def _condition(self, part: Condition) -> str:
        column, operator, value = part
        field = self.name(column)
        match operator:
            case "in":
                values = ", ".join(map(self.literal, value))  # type: ignore[call-overload]
                return f"{field} in ({values})" if values else "false"
            case "contains":
                return f"contains(lower({field}), lower({self.literal(str(value))}))"
            case _ if operator in _OPERATORS:
                return f"{field} {operator} {self.literal(value)}"
        raise ValueError(f"{operator} is not an operator of a condition")


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _literal(value: object) -> str:
    """Return a value as DataFusion has it: in text a quote is doubled, nothing else is special."""
    match value:
        case bool() | None:
            return literal(value)
        case int():
            return f"cast({value} as bigint)"
        case datetime():
            micros = (value - _EPOCH) // timedelta(microseconds=1)
            return f"arrow_cast(cast({micros} as bigint), 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case str():
            return "'{}'".format(value.replace("'", "''"))
        case _:
            raise TypeError(f"{type(value).__name__} has no spelling in SQL here")


#: Spark and SQL warehouses.
SPARK = Dialect(name=in_sql, literal=literal)
#: The engine of the deltalake package, DataFusion.
DATAFUSION = Dialect(name=_quoted, literal=_literal)
