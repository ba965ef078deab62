"""Lists every key of ``heartbeat.yml`` from the JSON schema, for documentation and for hints."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.config.model import ConfigurationFile
from harness.config.section import FREE_KEY

#: A part of the JSON schema.
Schema = Mapping[str, Any]

_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "array": "list",
    "null": "",
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
    schema = ConfigurationFile.model_json_schema()
    return tuple(_Walk(schema.get("$defs", {})).keys_of(schema, ()))


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


class _Walk:
    """Walks the JSON schema of the file."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def keys_of(self, section: Schema, path: tuple[str, ...]) -> Iterator[SettingsKey]:
        """Yield the keys of a section, each with those below it."""
        for name, schema in section["properties"].items():
            yield SettingsKey(
                path=(*path, name),
                type=self._type(schema),
                default="required" if name in section.get("required", ()) else _default(schema),
                meaning=schema.get("description", ""),
            )
            yield from self._inner_keys(schema, (*path, name))

    def _inner_keys(self, schema: Schema, path: tuple[str, ...]) -> Iterator[SettingsKey]:
        for branch in self._branches(schema):
            if "properties" in branch:
                yield from self.keys_of(branch, path)
            elif "items" in branch:
                yield from self._inner_keys(branch["items"], (*path, "[]"))
            elif FREE_KEY in branch:
                inside = (*path, f"<{branch[FREE_KEY]}>")
                value = branch["additionalProperties"]
                if "description" in value:
                    yield SettingsKey(
                        path=inside,
                        type=self._type(value),
                        default="",
                        meaning=value["description"],
                    )
                yield from self._inner_keys(value, inside)

    def _branches(self, schema: Schema) -> list[Schema]:
        """Return the alternatives of a value, each without a reference."""
        if "$ref" in schema:
            return self._branches(self._definitions[schema["$ref"].rpartition("/")[2]])
        inner = schema.get("anyOf") or schema.get("oneOf")
        return [each for part in inner for each in self._branches(part)] if inner else [schema]

    def _type(self, schema: Schema) -> str:
        words = [_words(branch) for branch in self._branches(schema)]
        return " or ".join(dict.fromkeys(word for word in words if word))


def _words(branch: Schema) -> str:
    if "properties" in branch:
        return "section"
    if "enum" in branch:
        return " or ".join(f"`{each}`" for each in branch["enum"])
    kind = branch["type"]
    return branch.get("format") or _WORDS.get(kind, "mapping") + _bounds(branch)


def _bounds(branch: Schema) -> str:
    if "maximum" not in branch:
        return ""
    over = branch.get("exclusiveMinimum")
    low = f"{branch['minimum']:,}" if over is None else f"over {over:,}"
    return f", {low} to {branch['maximum']:,}"


def _default(schema: Schema) -> str:
    value = schema.get("default")
    return f"`{value}`" if value not in (None, []) else ""
