"""Calls macros as dbt does, without dbt: no project, no database, answers are given."""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import md5
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from harness.toolkit.changes import macros

MACROS = Path(__file__).parents[2] / "macros"


class CompilationError(Exception):
    """What dbt raises when a macro refuses something."""


def _refuse(message: str) -> NoReturn:
    raise CompilationError(message)


@cache
def _files() -> list[Path]:
    # A materialization is a tag of dbt's own, and no macro that another one calls.
    return [path for path in MACROS.rglob("*.sql") if "materialization" not in path.name]


class Macros(macros.Macros):
    """All macros of the project, in a context as dbt gives it to a model.

    Args:
        variables: What `var` finds.
        environment: What `env_var` finds.
        answers: What the database answers, by the beginning of the query.
        context: What else is in the model's context: `model`, `target`, ...
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
        usual = {
            "exceptions": SimpleNamespace(raise_compiler_error=_refuse, warn=self.warned.append),
            "log": lambda message, info=False: self.logged.append(message),
            "local_md5": lambda text: md5(text.encode()).hexdigest(),
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
        }
        super().__init__(_files(), **{**usual, **context})

    def _answer(self, query: str) -> Any:
        for beginning, rows in self._answers.items():
            if query.startswith(beginning):
                return SimpleNamespace(rows=[dict(enumerate(row)) for row in rows])
        raise AssertionError(f"nobody knows an answer to: {query}")
