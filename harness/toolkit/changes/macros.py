"""Calls macros of the dbt project from Python, so that a rule of both is written once.

It has what dbt's context offers without a database: a macro that queries one cannot be called.
"""

import datetime
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

from harness.config.project import PACKAGE
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from jinja2 import Environment

#: The rules of changed rows and of the event query.
_FILES = (
    "events/chain.sql",
    "events/event_question.sql",
    "events/net_changes.sql",
    "ledgers/table_names.sql",
)


class _ReturnedError(Exception):
    def __init__(self, value: object) -> None:
        self.value = value


class Macros:
    """The macros of some files, each callable as an attribute of ``call``.

    Args:
        files: The files; a macro that calls one of another file needs that file, too.
        **context: What the macros find besides, or in the place of, the usual.
    """

    def __init__(self, files: Iterable[Path], **context: object) -> None:
        from jinja2 import Template

        self.call = SimpleNamespace()
        jinja = _jinja()
        jinja.globals |= {
            "heartbeat": self.call,
            "return": _return,
            "exceptions": SimpleNamespace(raise_compiler_error=_refuse),
            "tojson": json.dumps,
            "fromjson": _fromjson,
            "adapter": SimpleNamespace(quote=_quoted),
            "modules": SimpleNamespace(datetime=datetime, re=re),
            **context,
        }
        for file in files:
            template = Template.from_code(jinja, _compiled(file), jinja.globals)
            # A module has no names that begin with an underscore; the context of its template does.
            names = template.new_context()
            list(template.root_render_func(names))
            for name, macro in names.vars.items():
                setattr(self.call, name, _as_dbt_calls(macro))


@cache
def macros() -> Macros:
    """Return the macros with the rules of changed rows and of the event query."""
    return Macros(PACKAGE / "macros" / name for name in _FILES)


def _jinja() -> "Environment":
    from jinja2 import Environment

    # What is rendered is SQL.
    return Environment(extensions=["jinja2.ext.do"], autoescape=False)


@cache
def _compiled(file: Path) -> CodeType:
    return _jinja().compile(file.read_text(encoding="utf-8"))


def _as_dbt_calls(macro: Callable[..., object]) -> Callable[..., object]:
    def called(*arguments: object, **named: object) -> object:
        try:
            return str(macro(*arguments, **named))
        except _ReturnedError as returned:
            return returned.value

    return called


def _return(value: object) -> NoReturn:
    raise _ReturnedError(value)


def _refuse(message: str) -> NoReturn:
    raise ConfigurationError(message)


def _fromjson(text: str, default: object = None) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return default


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
