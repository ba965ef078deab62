"""Parses a preprocess query: what it names and calls, and the text of it that Spark receives.

Imported only when there is a query: the parser takes a while to load.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from harness.sense.preprocess.policy import Name, Use, name_of

#: Parses all that Spark does, and what only Databricks adds.
DIALECT = "databricks"

_OPENINGS = frozenset({"SELECT", "WITH", "FROM", "("})
#: Words that may stand before a bracket and call nothing.
_NO_CALLS = """
    all anti as by character cross cube dec distinct else except for from group having
    intersect join lateral limit minus natural numeric offset on order over partition pivot
    qualify rollup select sets sort tablesample then union unpivot using values varchar where
    within
"""
_CALL_NOTHING = frozenset(_NO_CALLS.split())
#: Tokens that every version of Spark splits a text into as this parser does.
_TOKEN = re.compile(
    r"\w+(?:\s+\w+)*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*"
    r"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[rR]'[^']*'|[rR]\"[^\"]*\"|[xX]'\w*'"
    r"|`(?:[^`]|``)+`"
    r"|[()\[\],.;:*/%+~&^|!=<>-]|::|->|=>|\|\||\|>|==|!=|<>|<=|>=|<=>|<<|>>|>>>",
    re.DOTALL,
)
_DOLLAR = re.compile(r"\\?\$|\\.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """One SELECT."""

    tree: exp.Query
    use: Use
    #: The names of its CTEs.
    ctes: frozenset[str]
    #: The same tokens without the comments and hints between them.
    text: str


def tokens_of(query: str) -> Sequence[Token]:
    """Split a query into tokens.

    Raises:
        SqlglotError: It cannot be split.
    """
    return sqlglot.tokenize(query, dialect=DIALECT)


def parsed(query: str, tokens: Sequence[Token]) -> ParsedQuery | None:
    """Parse a query; ``None`` when it is anything but one SELECT.

    Raises:
        SqlglotError: It is no SQL.
        RecursionError: It is nested too deeply.
    """
    # Checked before parsing: the parser lets unknown statements pass as commands.
    if not _is_one_statement(tokens) or tokens[0].text.upper() not in _OPENINGS:
        return None
    tree = sqlglot.parse_one(query, dialect=DIALECT)
    if not isinstance(tree, exp.Query) or not tree.selects:
        return None
    text, unclear = _cleaned(query, tokens)
    return ParsedQuery(
        tree=tree,
        use=_use_of(query, tree, tokens, unclear),
        ctes=frozenset(each.alias.lower() for each in tree.find_all(exp.CTE)),
        text=text,
    )


def _is_one_statement(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and all(each.token_type is not TokenType.SEMICOLON for each in tokens[:-1])


def _cleaned(query: str, tokens: Sequence[Token]) -> tuple[str, set[str]]:
    """Return what Spark reads, and the tokens that Spark may read otherwise.

    A comment does not end at the same place for both. ``${`` begins a variable of the process,
    which Spark replaces before it reads the text as SQL.
    """
    pieces, unclear, end = [""], set[str](), -1
    for token in tokens:
        if token.start <= end:
            # A part of a number, such as the `L` of `1L`, is a token of its own.
            continue
        piece = query[token.start : token.end + 1]
        if token.start > end + 1:
            pieces.append(" ")
        end = token.end
        if token.token_type in (TokenType.HINT, TokenType.SEMICOLON):
            continue
        if piece[0] in "'\"":
            piece = _DOLLAR.sub(_without_dollar, piece)
        if not _TOKEN.fullmatch(piece) or "${" in piece:
            unclear.add(f"has {piece!r} in it, which cannot be checked")
        pieces.append(piece)
    return "".join(pieces).strip(), unclear


def _without_dollar(found: re.Match[str]) -> str:
    return "\\u0024" if found.group().endswith("$") else found.group()


def _use_of(query: str, tree: exp.Query, tokens: Sequence[Token], unclear: set[str]) -> Use:
    tables = list(tree.find_all(exp.Table))
    named = [each for each in tables if isinstance(each.this, exp.Identifier)]
    makers = [each for each in tables if not isinstance(each.this, exp.Identifier)]
    if tree.find(exp.QueryTransform, exp.Command) is not None:
        unclear.add("runs a script; do without it")
    return Use(
        relations=frozenset(
            name_of(part.name for part in each.parts) for each in named if not _is_own(each)
        ),
        row_makers=frozenset(map(_maker_name, makers)),
        functions=frozenset(_functions(query, tree, tokens)),
        others=frozenset(unclear),
    )


def _is_own(table: exp.Table) -> bool:
    """Return whether a name is that of a CTE which can be seen from where it stands.

    Only a table has versions: Spark reads a table where a version stands, also beside a CTE of the
    same name.
    """
    if table.db or table.args.get("version") is not None:
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


def _functions(query: str, tree: exp.Query, tokens: Sequence[Token]) -> Iterator[Name]:
    """Return the functions called: each name before a bracket that is nothing else there."""
    called = Counter[Name]()
    for at, (token, bracket) in enumerate(pairwise(tokens)):
        # `group by` is one token.
        word = token.text if query[token.start] == "`" else (token.text.split() or [""])[-1]
        is_name = token.token_type is TokenType.IDENTIFIER or word.replace("_", "a").isalnum()
        if bracket.token_type is not TokenType.L_PAREN or not is_name:
            continue
        if at > 1 and tokens[at - 1].token_type is TokenType.DOT:
            called[name_of([tokens[at - 2].text, word])] += 1
        elif query[token.start] == "`" or word.lower() not in _CALL_NOTHING:
            called[name_of([word])] += 1
    # The columns of what has an alias stand between brackets, too.
    called.subtract(
        name_of([each.name]) for each in tree.find_all(exp.TableAlias) if each.columns and each.name
    )
    yield from (+called).keys()
