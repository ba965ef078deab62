"""Lists every key of ``heartbeat.yml`` from the models, for documentation and for hints."""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from harness.config.model import ConfigurationFile
from harness.config.secrets import SecretReference
from harness.config.section import KeyName

_WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    SecretReference: "secret reference",
    dict: "mapping",
    tuple: "list",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsKey:
    """One key of the file."""

    #: Its path; a free key stands in angle brackets, an entry of a list as ``[]``.
    path: tuple[str, ...]
    type: str
    default: str
    meaning: str

    @property
    def name(self) -> str:
        """Return the path as people write it."""
        return ".".join(self.path).replace(".[]", "[]")


@cache
def _all_keys() -> tuple[SettingsKey, ...]:
    return tuple(_keys_of(ConfigurationFile, ()))


def settings_keys() -> list[SettingsKey]:
    """Return every key that has a value of its own, in the order of the models."""
    return [key for key in _all_keys() if key.type != "section"]


def names_at(path: tuple[str, ...]) -> list[str]:
    """Return the names that are allowed as keys under a path of the file."""
    here = []
    for key in _all_keys():
        if len(key.path) == len(path) + 1 and _matches(key.path, path):
            here.append(key.path[-1])
    return [name for name in here if name[0] not in "<["]


def type_at(path: tuple[str, ...]) -> str:
    """Return the words for what the value under a path has to be."""
    fits = [key for key in _all_keys() if len(key.path) <= len(path) and _matches(key.path, path)]
    best = max(fits, key=lambda key: len(key.path), default=None)
    if best is None or best.type == "section":
        return "a mapping of its keys"
    return best.type.replace("`", "") if len(best.path) == len(path) else "text, in quotes"


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return all(each[0] in "<[" or each == part for each, part in zip(pattern, path, strict=False))


def _keys_of(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[SettingsKey]:
    for name, field in model.model_fields.items():
        annotation = _with_metadata(field)
        yield SettingsKey(
            path=(*path, name),
            type=_type(annotation) + _bounds(field),
            default=_default(field),
            meaning=field.description or "",
        )
        yield from _inner_keys(annotation, (*path, name))


def _bounds(field: FieldInfo) -> str:
    limits = {
        type(each): getattr(each, type(each).__name__.lower())
        for each in field.metadata
        if isinstance(each, Ge | Gt | Le)
    }
    if Le not in limits:
        return ""
    low = f"{limits[Ge]:,}" if Ge in limits else f"over {limits[Gt]:,}"
    return f", {low} to {limits[Le]:,}"


def _with_metadata(field: FieldInfo) -> Any:
    annotation: Any = field.annotation
    for each in field.metadata:
        if isinstance(each, KeyName):
            annotation = Annotated[annotation, each]
    return annotation


def _inner_keys(annotation: Any, path: tuple[str, ...]) -> Iterator[SettingsKey]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _keys_of(annotation, path)
        return
    if get_origin(annotation) is Annotated:
        plain, *metadata = get_args(annotation)
        names = [each.name for each in metadata if isinstance(each, KeyName)]
        if names and get_origin(plain) is dict:
            inside = (*path, f"<{names[0]}>")
            yield from _plain_values(get_args(plain)[1], inside)
            yield from _inner_keys(get_args(plain)[1], inside)
        else:
            yield from _inner_keys(plain, path)
        return
    inner = (*path, "[]") if get_origin(annotation) is tuple else path
    for each in get_args(annotation):
        if get_origin(annotation) is not Literal:
            yield from _inner_keys(each, inner)


def _plain_values(annotation: Any, path: tuple[str, ...]) -> Iterator[SettingsKey]:
    """Describe the values of a mapping that are no sections, where they say what they mean."""
    for each in getattr(annotation, "__metadata__", ()):
        if isinstance(each, FieldInfo) and each.description:
            kind = _type(annotation) + _bounds(each)
            yield SettingsKey(path=path, type=kind, default="", meaning=each.description)


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin in (Union, types.UnionType):
        branches = [_type(each) for each in arguments if each is not type(None)]
        return " or ".join(dict.fromkeys(branches))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return " or ".join(f"`{each.value}`" for each in annotation)
    return _WORDS.get(origin or annotation, "section")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is PydanticUndefined or field.default is None or field.default == ():
        return ""
    value: object = field.default
    return f"`{value.value if isinstance(value, StrEnum) else value}`"


def documentation_table(keys: list[SettingsKey] | None = None) -> list[str]:
    """Return the rows of the table in ``docs/configuration.md``."""
    return [
        f"| `{key.name}` | {key.type} | {key.default} | {key.meaning} |"
        for key in keys or settings_keys()
    ]
