"""What a warehouse makes of a statement before Spark gets it: names of three levels, and refusals.

Spark's session catalog is `spark_catalog`, and no second catalog can stand on the same metastore. So the name of the
catalog is replaced in each statement, token by token, and put back in answers and errors. Limits: an alias or column
that is called like the catalog, and has a dot behind it, is taken for the catalog.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.platform.sql_names import text_in_sql

OWN = "spark_catalog"
#: Prefix of the temporary views that stand for the tables of `information_schema`.
INFORMATION = "warehouse_information_schema_"

#: The documented settings of a SQL warehouse, and what Spark calls them; nothing: it has no such thing.
SETTINGS: Mapping[str, str | None] = {
    "ansi_mode": "spark.sql.ansi.enabled",
    "enable_photon": None,
    "legacy_time_parser_policy": "spark.sql.legacy.timeParserPolicy",
    "max_file_partition_bytes": "spark.sql.files.maxPartitionBytes",
    "query_tags": None,
    "read_only_external_metastore": None,
    "statement_timeout": None,
    "timezone": "spark.sql.session.timeZone",
    "use_cached_result": None,
}
#: The connector sets it in each session.
_OF_THE_CONNECTOR = "spark.thriftserver.arrowbasedrowset.timestampasstring"

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<name>(?:`(?:[^`]|``)*`|[^\W\d]\w*)(?:\.(?:`(?:[^`]|``)*`|\w+))*)
    | (?P<space>\s+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(r"`((?:[^`]|``)*)`|(\w+)")
_SET = re.compile(r"set\s+(?:session\s+)?([\w.]+)\s*(?:=\s*(.*))?", re.IGNORECASE | re.DOTALL)
_ON_COLUMN = re.compile(
    r"\s*comment\s+on\s+column\s+(\S+)\.(`[^`]+`|\w+)\s+is\s+(.*)", re.IGNORECASE | re.DOTALL
)
_ON_VIEW = re.compile(r"\s*comment\s+on\s+view\s+(\S+)\s+is\s+(.*)", re.IGNORECASE | re.DOTALL)
_USE_CATALOG = re.compile(r"\s*(?:use|set)\s+catalog\s+(\S+?)\s*;?\s*", re.IGNORECASE)
#: What a warehouse does not do, by its beginning.
_REFUSED = (
    (r"add\s+(?:jars?|files?|archives?)\b", "ADD JAR, FILE or ARCHIVE"),
    (r"list\s+(?:jars?|files?|archives?)\b", "LIST JAR, FILE or ARCHIVE"),
    (r"insert\s+overwrite\s+(?:local\s+)?directory\b", "INSERT OVERWRITE DIRECTORY"),
    (r"(?:un)?cache\s+(?:lazy\s+)?table\b|clear\s+cache\b", "CACHE TABLE"),
    (r"create\s+(?:or\s+replace\s+)?global\s+temp", "GLOBAL TEMPORARY VIEW"),
    (r"load\s+data\b", "LOAD DATA"),
)
_NOT_THERE = re.compile(r"`([^`]+)`\.`[^`]+`\.`[^`]+`")
#: Spark's error for a name of three levels whose first is no catalog.
_NO_CATALOG = re.compile(r"REQUIRES_SINGLE_PART_NAMESPACE.*but got `([^`]+)`\.", re.DOTALL)
_IS_NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


class RefusedError(Exception):
    """The warehouse does not run the statement.

    Args:
        message: The text of the error.
        sql_state: Five characters.
    """

    def __init__(self, message: str, sql_state: str) -> None:
        super().__init__(f"{message} SQLSTATE: {sql_state}")
        self.sql_state = sql_state


@dataclass(frozen=True, slots=True)
class Understood:
    """A statement for Spark.

    Attributes:
        text: The statement.
        information: The tables of `information_schema` that it reads.
    """

    text: str
    information: frozenset[str] = frozenset()


class Dialect:
    """Translates for a warehouse with one catalog.

    Args:
        catalog: Its name.
    """

    def __init__(self, catalog: str) -> None:
        self.catalog = catalog

    def require(self, catalog: str) -> None:
        """Refuse a catalog that is not there."""
        if catalog.strip("`").lower() != self.catalog.lower():
            raise _no_catalog(catalog.strip("`"))

    def understood(self, statement: str) -> Understood:
        """Return what Spark is to run.

        Raises:
            RefusedError: A warehouse does not run it.
        """
        bare = "".join(
            text for kind, text in _tokens(statement) if not _is_comment(kind, text)
        ).strip()
        bare = bare.rstrip(";").strip()
        self._admit(bare)
        if used := _USE_CATALOG.fullmatch(bare):
            self.require(used[1])
            return Understood(f"set catalog {OWN}")
        if found := _SET.fullmatch(bare):
            return Understood(_setting(found[1], found[2]))
        if found := _ON_COLUMN.fullmatch(bare):
            bare = f"alter table {found[1]} alter column {found[2]} comment {found[3]}"
        elif found := _ON_VIEW.fullmatch(bare):
            bare = f"alter view {found[1]} set tblproperties ('comment' = {found[2]})"
        return self._renamed(bare)

    def _admit(self, bare: str) -> None:
        for beginning, what in _REFUSED:
            if re.match(beginning, bare, re.IGNORECASE):
                raise RefusedError(
                    f"[UNSUPPORTED_FEATURE.SQL_WAREHOUSE] The feature is not supported: {what} is not supported "
                    "on SQL warehouses.",
                    "0A000",
                )

    def _renamed(self, statement: str) -> Understood:
        words: list[str] = []
        information = set()
        written = []
        for kind, text in _tokens(statement):
            if kind == "name":
                parts = _parts(text)
                if _is_information(parts, self.catalog):
                    information.add(parts[2].lower())
                    written.append(INFORMATION + parts[2].lower())
                else:
                    written.append(self._name(text, parts, words))
                words.append(text.lower())
            else:
                written.append(text)
                if kind != "space":
                    words.append(text)
        text = re.sub(
            r"\bcurrent_catalog\s*\(\s*\)", f"'{self.catalog}'", "".join(written), flags=re.I
        )
        return Understood(text, frozenset(information))

    def _name(self, text: str, parts: list[str], before: list[str]) -> str:
        first = parts[0].lower()
        is_catalog = before[-2:] in (["schemas", "in"], ["schemas", "from"], ["databases", "in"])
        if is_catalog and len(parts) == 1:
            self.require(parts[0])
            return OWN
        if len(parts) < 2:
            return text
        if first == OWN and first != self.catalog.lower():
            raise _no_catalog(parts[0])
        if first in ("delta", "parquet", "csv", "json") and "/" in parts[1]:
            raise RefusedError(
                "[INSUFFICIENT_PERMISSIONS] Insufficient privileges:\n"
                "User does not have permission SELECT on any file.",
                "42501",
            )
        if first == self.catalog.lower():
            return OWN + text[len(_PART.match(text)[0]) :]  # type: ignore[index]
        return text

    def answered(self, text: str) -> str:
        """Return an answer of Spark's with the name of the catalog in it."""
        return text.replace(OWN, self.catalog)

    def reported(self, message: str) -> str:
        """Return an error of Spark's as the warehouse words it."""
        said = self.answered(message)
        if found := _NO_CATALOG.search(said):
            return str(_no_catalog(found[1]))
        named = _NOT_THERE.search(said)
        if (
            named
            and named[1].lower() != self.catalog.lower()
            and any(w in said for w in _IS_NOT_THERE)
        ):
            return str(_no_catalog(named[1]))
        return said


def bound(statement: str, parameters: Sequence[Any]) -> str:
    """Return a statement with the values of its parameters in it.

    Spark binds none where an extension has a parser of its own, as Delta has.

    Args:
        statement: The statement, with ``:name`` or ``?`` where a parameter is.
        parameters: As the connector sends them.
    """
    if not parameters:
        return statement
    named = {each.name: each for each in parameters if each.name}
    rest = iter(parameters)
    written: list[str] = []
    for kind, text in _tokens(statement):
        if kind == "other" and text == "?":
            written.append(_literal(next(rest)))
        elif (
            kind == "name"
            and text in named
            and written[-1:] == [":"]
            and written[-2:] != [":", ":"]
        ):
            written[-1] = _literal(named[text])
        else:
            written.append(text)
    return "".join(written)


def _literal(parameter: Any) -> str:
    if parameter.value is None:
        return "null"
    return f"cast({text_in_sql(parameter.value.stringValue)} as {parameter.type})"


def _tokens(statement: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(statement):
        yield str(found.lastgroup), found[0]


def _is_comment(kind: str, text: str) -> bool:
    return kind == "comment" and not text.startswith("/*+")


def _parts(name: str) -> list[str]:
    return [(quoted or bare).replace("``", "`") for quoted, bare in _PART.findall(name)]


def _is_information(parts: list[str], catalog: str) -> bool:
    return (
        len(parts) == 3
        and parts[0].lower() in ("system", catalog.lower())
        and parts[1].lower() == "information_schema"
    )


def _setting(key: str, value: str | None) -> str:
    """Return what sets or shows a setting that a warehouse has.

    Raises:
        RefusedError: It has no such setting.
    """
    name = setting_of(key)
    if name is None:
        return f"select '{key}' as key, '{value or ''}' as value"
    return f"set {name}" if value is None else f"set {name} = {value}"


def setting_of(key: str) -> str | None:
    """Return what Spark calls a setting of a warehouse; nothing when it has no such thing.

    Raises:
        RefusedError: A warehouse does not let it be set.
    """
    lower = key.lower()
    if lower in SETTINGS:
        return SETTINGS[lower]
    same = {name.lower(): name for name in SETTINGS.values() if name}
    if lower in same:
        return same[lower]
    if lower == _OF_THE_CONNECTOR:
        return None
    raise RefusedError(f"[CONFIG_NOT_AVAILABLE] Configuration {key} is not available.", "42K0I")


def _no_catalog(name: str) -> RefusedError:
    return RefusedError(
        f"[NO_SUCH_CATALOG_EXCEPTION] Catalog '{name}' was not found. "
        "Please verify the catalog name and then retry the query or command again.",
        "42704",
    )
