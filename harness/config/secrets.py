"""Secrets by reference: where a secret is kept, and how it is fetched at the moment of use.

A reference never holds the value, so that its text, JSON and pickle cannot give it away.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from pydantic import BaseModel, GetCoreSchemaHandler, SecretStr
from pydantic_core import CoreSchema, core_schema

from harness.errors import ConfigurationError

#: What a schema calls a reference.
SCHEMA_FORMAT = "secret-reference"

ALLOWED = "allowed is a reference, env:NAME or secret:scope/key"

_ENVIRONMENT = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_SECRET = re.compile(r"secret:([\w.@-]+/[\w.@/-]+)")


class SecretStore(StrEnum):
    """Where a secret is kept."""

    #: An environment variable of this process.
    ENVIRONMENT = "env"
    #: A secret scope of the Databricks workspace.
    SCOPE = "secret"


class SecretResolver(Protocol):
    """Fetches secrets."""

    def look_up(self, store: SecretStore, name: str) -> str | None:
        """Return the value; ``None`` when the store has none under this name."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class SecretReference:
    """Determines where a secret is kept. The value is fetched by ``resolve`` and never stored."""

    store: SecretStore
    #: A variable's name, or ``scope/key``.
    name: str

    @classmethod
    def parse(cls, text: object) -> "SecretReference":
        """Read ``env:NAME`` or ``secret:scope/key``.

        Raises:
            ValueError: It is anything else; the message never repeats the text.
        """
        if isinstance(text, SecretReference):
            return text
        if isinstance(text, str):
            for store, pattern in (
                (SecretStore.ENVIRONMENT, _ENVIRONMENT),
                (SecretStore.SCOPE, _SECRET),
            ):
                found = pattern.fullmatch(text)
                if found:
                    return cls(store, found.group(1))
        raise ValueError(f"a secret must not stand in the file; {ALLOWED}")

    @property
    def location(self) -> str:
        """Return the reference itself, for a message that shows which one is missing."""
        return f"{self.store.value}:{self.name}"

    def resolve(self, resolver: SecretResolver) -> SecretStr:
        """Fetch the value now; it stays hidden until ``get_secret_value`` is called.

        Raises:
            ConfigurationError: There is no such secret, or it is empty.
        """
        value = resolver.look_up(self.store, self.name)
        if not value:
            raise ConfigurationError(f"{self.location} is not set; set it where Heartbeat runs")
        return SecretStr(value)

    def __str__(self) -> str:
        return f"{self.store.value}:***"

    def __repr__(self) -> str:
        return f"SecretReference({self})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic read a reference from text and write it masked."""
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: object) -> dict[str, object]:
        """Let a schema name a reference."""
        return {"type": "string", "format": SCHEMA_FORMAT}


def references_in(
    value: object, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], SecretReference]]:
    """Return every reference in a part of the configuration, each with its path."""
    if isinstance(value, SecretReference):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from references_in(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from references_in(each, (*path, str(name)))


class EnvironmentSecrets:
    """Fetches ``env:`` references; on its own it reads no secret scope."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def look_up(self, store: SecretStore, name: str) -> str | None:
        """Return the variable's value; ``None`` when it is not set.

        Raises:
            ConfigurationError: The reference is to a secret scope.
        """
        if store is SecretStore.SCOPE:
            message = f"secret:{name} can only be read in a Databricks workspace; use env:NAME"
            raise ConfigurationError(message)
        return self._environment.get(name)
