"""Lists every key of ``heartbeat.yml`` from the models' schema, for documentation and for hints."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.config.model import ConfigurationFile
from harness.config.secrets import SCHEMA_FORMAT
from harness.config.section import KEY_NAME

_WORDS = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "object": "mapping",
    "array": "list",
}

_LIST_OF = "list of "

_Schema = Mapping[str, Any]


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
    return tuple(_Keys(schema["$defs"]).of(schema, ()))


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
    if len(best.path) == len(path):
        return best.type.replace("`", "")
    is_entry = best.type.startswith(_LIST_OF)
    return best.type.removeprefix(_LIST_OF).replace("`", "") if is_entry else "text, in quotes"


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return all(each[0] in "<[" or each == part for each, part in zip(pattern, path, strict=False))


class _Keys:
    """Walks a schema.

    Args:
        definitions: The parts that it refers to.
    """

    def __init__(self, definitions: Mapping[str, _Schema]) -> None:
        self._definitions = definitions

    def of(self, section: _Schema, path: tuple[str, ...]) -> Iterator[SettingsKey]:
        """Describe the keys of a section, and those below them."""
        for name, value in section["properties"].items():
            is_required = name in section.get("required", ())
            yield self._key(value, (*path, name), is_required=is_required)
            yield from self._below(value, (*path, name))

    def _key(
        self, value: _Schema, path: tuple[str, ...], *, is_required: bool = False
    ) -> SettingsKey:
        branches = self._branches(value)
        kinds = dict.fromkeys(map(self._type, branches))
        bounds = "".join(_bounds(each) for each in branches)
        return SettingsKey(
            path=path,
            type=" or ".join(kinds) + bounds,
            default="required" if is_required else _default(value),
            meaning=value.get("description", ""),
        )

    def _below(self, value: _Schema, path: tuple[str, ...]) -> Iterator[SettingsKey]:
        for branch in self._branches(value):
            if "properties" in branch:
                yield from self.of(branch, path)
            elif "items" in branch:
                yield from self._below(branch["items"], (*path, "[]"))
            elif KEY_NAME in branch:
                inside = (*path, f"<{branch[KEY_NAME]}>")
                if "description" in branch["additionalProperties"]:
                    yield self._key(branch["additionalProperties"], inside)
                yield from self._below(branch["additionalProperties"], inside)

    def _type(self, value: _Schema) -> str:
        words = _type(value)
        entries = self._branches(value["items"]) if value.get("items") else []
        if words != "list" or not all("enum" in each for each in entries) or not entries:
            return words
        return _LIST_OF + " or ".join(map(_type, entries))

    def _branches(self, value: _Schema) -> list[_Schema]:
        """Return what a value may be, other than absent."""
        if "$ref" in value:
            return self._branches(self._definitions[value["$ref"].rpartition("/")[2]])
        for union in ("anyOf", "oneOf"):
            if union in value:
                return [each for one in value[union] for each in self._branches(one)]
        return [] if value["type"] == "null" else [value]


def _type(value: _Schema) -> str:
    if "properties" in value:
        return "section"
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    if value.get("format") == SCHEMA_FORMAT:
        return "secret reference"
    return _WORDS[value["type"]]


def _bounds(value: _Schema) -> str:
    if "maximum" not in value:
        return ""
    low = value.get("minimum")
    words = f"over {value['exclusiveMinimum']:,}" if low is None else f"{low:,}"
    return f", {words} to {value['maximum']:,}"


def _default(value: _Schema) -> str:
    default = value.get("default")
    return "" if default in (None, []) else f"`{default}`"
