"""Judges a preprocess query without running it: it parses, is one SELECT, reads the new rows.

Imported only when a file holds a query: the parser takes a while to load.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from harness.controls.findings import Code, closest, shown
from harness.controls.shapes import Problem

#: The name under which a query finds the rows that are new.
NEW_DATA = "sensor_new_data"
PLACEHOLDERS = ("?upstream_key", "?upstream_value")

#: Understands all that Spark does, and what only Databricks adds.
_DIALECT = "databricks"

#: Functions that run code outside SQL; the text of the CSV is not trusted that far.
_FORBIDDEN = frozenset({"reflect", "java_method", "try_reflect"})
_OPENINGS = frozenset({"SELECT", "WITH", "FROM", "("})


def check_query(query: str) -> list[Problem]:
    """Return what is wrong with a preprocess query; nothing when it may be run."""
    rendered = re.sub(r"\?upstream_key\b", "upstream_key", query)
    rendered = re.sub(r"\?upstream_value\b", "0", rendered)
    try:
        return _check_rendered(rendered)
    except SqlglotError as error:
        return [(Code.QUERY_SYNTAX, _syntax_message(error))]
    except RecursionError:
        message = "the query is nested too deeply to be read; simplify it."
        return [(Code.QUERY_SYNTAX, message)]


def _check_rendered(query: str) -> list[Problem]:
    tokens = sqlglot.tokenize(query, dialect=_DIALECT)
    placeholder = _unknown_placeholder(tokens)
    if placeholder is not None:
        return [(Code.QUERY_PLACEHOLDER, placeholder)]
    # Looked at before parsing: the parser lets statements that it does not know pass as commands.
    if not _is_one_statement(tokens) or tokens[0].text.upper() not in _OPENINGS:
        return [(Code.QUERY_NOT_ONE_SELECT, _not_one_select())]
    return _check_tree(sqlglot.parse_one(query, dialect=_DIALECT))


def _check_tree(tree: exp.Expr) -> list[Problem]:
    if not isinstance(tree, exp.Query) or not tree.selects:
        return [(Code.QUERY_NOT_ONE_SELECT, _not_one_select())]
    problems = []
    if not _reads_new_data(tree):
        message = f"the query does not read {NEW_DATA}; select from it, it holds the new rows."
        problems.append((Code.QUERY_WITHOUT_NEW_DATA, message))
    called = {str(each.name).lower() for each in tree.find_all(exp.Anonymous)}
    for name in sorted(called & _FORBIDDEN):
        message = f"the function {name} is not allowed: it runs code outside SQL."
        problems.append((Code.QUERY_FORBIDDEN, message))
    for each in tree.find_all(exp.Placeholder, exp.Parameter):
        message = f"{shown(each.sql(dialect=_DIALECT))} {_only_placeholders()}"
        problems.append((Code.QUERY_PLACEHOLDER, message))
    return problems


def _reads_new_data(tree: exp.Expr) -> bool:
    own_names = {str(each.alias).lower() for each in tree.find_all(exp.CTE)}
    if NEW_DATA in own_names:
        return False
    return any(
        table.name.lower() == NEW_DATA and not table.db for table in tree.find_all(exp.Table)
    )


def _is_one_statement(tokens: Sequence[Token]) -> bool:
    if not tokens:
        return False
    return all(each.token_type is not TokenType.SEMICOLON for each in tokens[:-1])


def _unknown_placeholder(tokens: Sequence[Token]) -> str | None:
    for mark, word in zip_longest(tokens, tokens[1:]):
        if mark.token_type is TokenType.PLACEHOLDER:
            adjacent = word is not None and word.start == mark.end + 1
            name = f"?{word.text}" if word is not None and adjacent else "?"
            meant = closest(name, PLACEHOLDERS)
            hint = f"; did you mean {meant}?" if meant else "."
            return f"{shown(name)} {_only_placeholders().removesuffix('.')}{hint}"
    return None


def _only_placeholders() -> str:
    return f"is no placeholder; allowed are {PLACEHOLDERS[0]} and {PLACEHOLDERS[1]}."


def _not_one_select() -> str:
    return f"the query is not a single SELECT; write one SELECT over {NEW_DATA}."


def _syntax_message(error: Exception) -> str:
    details = getattr(error, "errors", None) or [{}]
    near = details[0].get("highlight") or ""
    where = f" near {shown(near)}" if near else ""
    line, column = details[0].get("line"), details[0].get("col")
    place = f" (line {line} of the query, character {column})" if line and column else ""
    return f"the query does not parse as Spark SQL{where}{place}; put it right, or leave it empty."
