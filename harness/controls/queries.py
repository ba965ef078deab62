"""Judges a preprocess query without running it: it parses, is one SELECT, reads the new rows alone.

Imported only when a file holds a query: the parser takes a while to load.
"""

import re
from collections.abc import Collection, Sequence
from itertools import zip_longest

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from harness.controls.findings import Code, closest, shown
from harness.controls.identifiers import Problem
from harness.sense.preprocess.parser import DIALECT, parsed, tokens_of
from harness.sense.preprocess.policy import NEW_DATA, uncalled, unread

PLACEHOLDERS = ("?upstream_key", "?upstream_value")

#: Spark replaces it by a variable of the process, before it reads the text as SQL.
_VARIABLE = "${"


def check_query(query: str, may_read: Collection[str] = ()) -> list[Problem]:
    """Return what is wrong with a preprocess query; nothing when it may be run.

    Args:
        query: The text of the cell.
        may_read: Tables and views that the configuration allows besides the new rows.
    """
    if _VARIABLE in query:
        message = f"the query has {_VARIABLE} in it, which begins a variable; write it without."
        return [(Code.QUERY_FORBIDDEN, message)]
    rendered = re.sub(r"\?upstream_key\b", "upstream_key", query)
    rendered = re.sub(r"\?upstream_value\b", "0", rendered)
    try:
        return _check_rendered(rendered, may_read)
    except SqlglotError as error:
        return [(Code.QUERY_SYNTAX, _syntax_message(error))]
    except RecursionError:
        message = "the query is nested too deeply to be read; simplify it."
        return [(Code.QUERY_SYNTAX, message)]


def _check_rendered(query: str, may_read: Collection[str]) -> list[Problem]:
    tokens = tokens_of(query)
    placeholder = _unknown_placeholder(tokens)
    if placeholder is not None:
        return [(Code.QUERY_PLACEHOLDER, placeholder)]
    found = parsed(query, tokens)
    if found is None:
        message = f"the query is not a single SELECT; write one SELECT over {NEW_DATA}."
        return [(Code.QUERY_NOT_ONE_SELECT, message)]
    problems = []
    if (NEW_DATA,) not in found.use.relations:
        message = f"the query does not read {NEW_DATA}; select from it, it holds the new rows."
        problems.append((Code.QUERY_WITHOUT_NEW_DATA, message))
    for phrase in unread(found.use, may_read):
        problems.append((Code.QUERY_READS_MORE, f"the query {phrase}."))
    for phrase in uncalled(found.use):
        problems.append((Code.QUERY_FORBIDDEN, f"the query {phrase}."))
    for each in found.tree.find_all(exp.Placeholder, exp.Parameter):
        message = f"{shown(each.sql(dialect=DIALECT))} {_only_placeholders()}"
        problems.append((Code.QUERY_PLACEHOLDER, message))
    return problems


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
    return f"is not a placeholder; allowed are {PLACEHOLDERS[0]} and {PLACEHOLDERS[1]}."


def _syntax_message(error: Exception) -> str:
    details = getattr(error, "errors", None) or [{}]
    near = details[0].get("highlight") or ""
    where = f" near {shown(near)}" if near else ""
    line, column = details[0].get("line"), details[0].get("col")
    place = f" (line {line} of the query, character {column})" if line and column else ""
    return f"the query does not parse as Spark SQL{where}{place}; put it right, or leave it empty."
