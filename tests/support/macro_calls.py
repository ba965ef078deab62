"""Calls macros as dbt does, without dbt: no project, no database, answers are given."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import md5
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any, NoReturn

from jinja2 import Environment, Template, Undefined

MACROS = Path(__file__).parents[2] / "macros"


class CompilationError(Exception):
    """What dbt raises when a macro refuses something."""


class _ReturnedError(Exception):
    def __init__(self, value: object) -> None:
        self.value = value


class _Lenient(Undefined):
    """dbt leaves what is unknown undefined, and so false."""


def _refuse(message: str) -> NoReturn:
    raise CompilationError(message)


def _return(value: object) -> NoReturn:
    raise _ReturnedError(value)


def _fromjson(text: str, default: object = None) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return default


def _jinja() -> Environment:
    return Environment(extensions=["jinja2.ext.do"], undefined=_Lenient, autoescape=False)


@cache
def _compiled() -> list[CodeType]:
    # A materialization is a tag of dbt's own, and no macro that another one calls.
    paths = (path for path in MACROS.rglob("*.sql") if "materialization" not in path.name)
    return [_jinja().compile(path.read_text(encoding="utf-8")) for path in paths]


class Macros:
    """All macros of the project, in a context as dbt gives it to a model.

    Args:
        variables: What `var` finds.
        environment: What `env_var` finds.
        answers: What the database answers, by the beginning of the query.
        context: What else the model knows: `model`, `target`, ...
    """

    def __init__(
        self,
        *,
        variables: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        answers: Mapping[str, Sequence[Sequence[object]]] | None = None,
        **context: object,
    ) -> None:
        self.logged: list[str] = []
        self.warned: list[str] = []
        known, services = variables or {}, environment or {}
        self._answers = answers or {}
        jinja = _jinja()
        package = SimpleNamespace()
        jinja.globals |= {
            "heartbeat": package,
            "return": _return,
            "exceptions": SimpleNamespace(raise_compiler_error=_refuse, warn=self.warned.append),
            "tojson": json.dumps,
            "fromjson": _fromjson,
            "log": lambda message, info=False: self.logged.append(message),
            "modules": SimpleNamespace(re=re),
            "local_md5": lambda text: md5(text.encode()).hexdigest(),
            "adapter": SimpleNamespace(quote=lambda name: f"`{name}`"),
            "var": lambda name, default=None: known.get(name, default),
            "env_var": lambda name, default=None: services.get(name, default),
            "run_query": self._answer,
            "execute": True,
            "flags": SimpleNamespace(WHICH="run", EMPTY=False, FULL_REFRESH=False),
            "model": SimpleNamespace(
                name="orders",
                unique_id="model.shop.orders",
                resource_type="model",
                config=SimpleNamespace(materialized="table"),
            ),
            "target": SimpleNamespace(type="spark"),
            "project_name": "shop",
            "invocation_id": "run-1",
            **context,
        }
        for code in _compiled():
            template = Template.from_code(jinja, code, jinja.globals)
            # A module has no names that begin with an underscore; the context of its template does.
            context = template.new_context()
            list(template.root_render_func(context))
            for name, macro in context.vars.items():
                setattr(package, name, self._as_dbt_calls(macro))
        self.call = package

    def _as_dbt_calls(self, macro: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object, **named: object) -> object:
            try:
                return str(macro(*arguments, **named))
            except _ReturnedError as returned:
                return returned.value

        return called

    def _answer(self, query: str) -> Any:
        for beginning, rows in self._answers.items():
            if query.startswith(beginning):
                return SimpleNamespace(rows=[dict(enumerate(row)) for row in rows])
        raise AssertionError(f"nobody knows an answer to: {query}")
