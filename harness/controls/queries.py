"""Judges a preprocess query without running it: it parses, is one SELECT, reads the new rows alone.

Imported only when a file holds a query: the parser takes a while to load.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise, zip_longest

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from harness.controls.findings import Code, closest, shown
from harness.controls.identifiers import Problem
from harness.sense.preprocess.policy import (
    NEW_DATA,
    Name,
    Use,
    is_refused,
    name_of,
    uncalled,
    unread,
)

PLACEHOLDERS = ("?upstream_key", "?upstream_value")

#: Understands all that Spark does, and what only Databricks adds.
_DIALECT = "databricks"

#: Spark replaces it by a variable of the process, before it reads the text as SQL.
_VARIABLE = "${"
_OPENINGS = frozenset({"SELECT", "WITH", "FROM", "("})


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
    tokens = sqlglot.tokenize(query, dialect=_DIALECT)
    placeholder = _unknown_placeholder(tokens)
    if placeholder is not None:
        return [(Code.QUERY_PLACEHOLDER, placeholder)]
    # Looked at before parsing: the parser lets statements that it does not know pass as commands.
    if not _is_one_statement(tokens) or tokens[0].text.upper() not in _OPENINGS:
        return [(Code.QUERY_NOT_ONE_SELECT, _not_one_select())]
    tree = sqlglot.parse_one(query, dialect=_DIALECT)
    if not isinstance(tree, exp.Query) or not tree.selects:
        return [(Code.QUERY_NOT_ONE_SELECT, _not_one_select())]
    problems = []
    use = _use_of(tree, tokens)
    if (NEW_DATA,) not in use.relations:
        message = f"the query does not read {NEW_DATA}; select from it, it holds the new rows."
        problems.append((Code.QUERY_WITHOUT_NEW_DATA, message))
    for phrase in unread(use, may_read):
        problems.append((Code.QUERY_READS_MORE, f"the query {phrase}."))
    for phrase in uncalled(use):
        problems.append((Code.QUERY_FORBIDDEN, f"the query {phrase}."))
    for each in tree.find_all(exp.Placeholder, exp.Parameter):
        message = f"{shown(each.sql(dialect=_DIALECT))} {_only_placeholders()}"
        problems.append((Code.QUERY_PLACEHOLDER, message))
    return problems


def _use_of(tree: exp.Expr, tokens: Sequence[Token]) -> Use:
    tables = list(tree.find_all(exp.Table))
    named = [each for each in tables if isinstance(each.this, exp.Identifier)]
    makers = [each for each in tables if not isinstance(each.this, exp.Identifier)]
    runs_script = tree.find(exp.QueryTransform, exp.Command) is not None
    return Use(
        relations=frozenset(
            name_of(part.name for part in each.parts) for each in named if not _is_own(each)
        ),
        row_makers=frozenset(map(_maker_name, makers)),
        functions=frozenset(_functions(tree, tokens)),
        others=frozenset({"runs a script; do without it"} if runs_script else ()),
    )


def _is_own(table: exp.Table) -> bool:
    """Return whether a name is that of a CTE which can be seen from where it stands."""
    if table.db:
        return False
    below: exp.Expr = table
    while (above := below.parent) is not None:
        if table.name.lower() in _names_seen(above, below):
            return True
        below = above
    return False


def _names_seen(above: exp.Expr, below: exp.Expr) -> set[str]:
    """Return the CTEs that a part of a query sees by being a part of what stands above it."""
    if isinstance(above, exp.With):
        # A CTE sees those before it, and itself if that is stated.
        at = next(at for at, each in enumerate(above.expressions) if each is below)
        last = at + 1 if above.recursive else at
        return {each.alias.lower() for each in above.expressions[:last]}
    openings = (each for each in above.args.values() if isinstance(each, exp.With))
    opening = next((each for each in openings if each is not below), None)
    return {each.alias.lower() for each in opening.expressions} if opening else set()


def _maker_name(table: exp.Table) -> Name:
    made = table.this
    known = isinstance(made, exp.Func) and not isinstance(made, exp.Anonymous)
    name = made.sql_name() if known else made.name
    return name_of([*filter(None, (table.catalog, table.db)), name])


def _functions(tree: exp.Expr, tokens: Sequence[Token]) -> Iterator[Name]:
    """Return the functions called; a word before a bracket may also be a keyword or an alias."""
    for called in tree.find_all(exp.Anonymous):
        if not isinstance(called.parent, exp.Dot):
            yield name_of([called.name])
    # The parser has names of its own for the functions that it knows.
    for at, (token, bracket) in enumerate(pairwise(tokens)):
        if bracket.token_type is TokenType.L_PAREN and _is_word(token):
            if at > 1 and tokens[at - 1].token_type is TokenType.DOT:
                yield name_of([tokens[at - 2].text, token.text])
            elif is_refused(token.text):
                yield name_of([token.text])


def _is_word(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum()


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
