"""Parses the ``sensor_id`` of a ``jdbc`` row (a relation) and of a ``kafka`` row (a topic)."""

import re
from dataclasses import dataclass

_RELATION = re.compile(r"\s*([\w.-]+)\s*:\s*(.+?)\s*", re.DOTALL)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^\s."\'`;(),]+)')
_FIRST_WORD = re.compile(r"\(\s*(select|with)\b", re.IGNORECASE)
#: What stands in quotes is passed over; what follows may lead out of the parentheses.
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--|/\*|[;()'"]""")


@dataclass(frozen=True, slots=True)
class Name:
    """One part of a name; a bare one is spelled in the case that the database prefers."""

    text: str
    is_exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table by its name, or a query, of one connection."""

    connection: str
    #: Schema and table; empty for a query.
    table: tuple[Name, ...] = ()
    #: The query with its parentheses; ``None`` for a table.
    query: str | None = None


def relation_from(sensor_id: str) -> Relation | None:
    """Read ``connection: schema.table`` or ``connection: (select ...)``; ``None`` for others."""
    form = _RELATION.fullmatch(sensor_id)
    if form is None:
        return None
    connection, what = form.groups()
    if what.startswith("("):
        return Relation(connection=connection, query=what) if _is_one_query(what) else None
    table = names_from(what)
    return Relation(connection=connection, table=table) if table and len(table) <= 3 else None


def names_from(text: str) -> tuple[Name, ...]:
    """Split a name at its dots; one in double quotes is exact. Empty when it is no name."""
    names, at = [], 0
    while True:
        found = _PART.match(text, at)
        if found is None:
            return ()
        exact, bare = found.groups()
        names.append(Name(exact.replace('""', '"'), is_exact=True) if exact else Name(bare))
        at = found.end()
        if at == len(text):
            return tuple(names)
        if text[at] != ".":
            return ()
        at += 1


def _is_one_query(text: str) -> bool:
    """Return whether it is one pair of parentheses round a query, out of which nothing leads."""
    # Some databases take a backslash in quotes for more than itself.
    if _FIRST_WORD.match(text) is None or "\\" in text:
        return False
    depth = 0
    for token in _TOKEN.finditer(text):
        match token.group():
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if depth == 0:
                    return token.end() == len(text)
            case "--" | "/*" | ";" | "'" | '"':
                return False
    return False


_TOPIC = re.compile(r"\s*([^:\s](?:[^:]*[^:\s])?)\s*:\s*([A-Za-z0-9._-]{1,249})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicName:
    """A topic, and the product whose cluster it is in."""

    #: The key below ``connections.kafka`` of ``heartbeat.yml``.
    product: str
    topic: str


def topic_name_from(sensor_id: str) -> TopicName | None:
    """Read ``product: topic``; ``None`` for anything that Kafka would not take for a topic."""
    form = _TOPIC.fullmatch(sensor_id)
    if form is None or form.group(2) in {".", ".."}:
        return None
    return TopicName(product=form.group(1), topic=form.group(2))
