"""Reads a YAML file into plain values, and records on which line each key stands."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from harness.errors import ConfigurationError

LARGEST_FILE = 2**20
MOST_VALUES = 50_000
DEEPEST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One YAML file: its values as plain Python, and the tree that has the lines."""

    name: str
    values: dict[Any, Any]
    tree: Any

    def find(self, location: Sequence[int | str]) -> tuple[tuple[str, ...], int]:
        """Return the path in the file that a location of pydantic means, and its line from 1.

        A part that is no key of the file (a branch of a union, a missing key) is passed over,
        except the last one, which names what is missing.
        """
        node, line, path = self.tree, 1, []
        for part in location:
            key = _key_in(node, part)
            if key is None:
                continue
            position = node.lc.data.get(key) if node.lc.data else None
            line = position[0] + 1 if position else line
            node = node[key]
            path.append(str(part))
        return tuple(path), line


def read_yaml(path: Path, name: str) -> Document:
    """Read a file that holds a mapping; an empty one holds an empty mapping.

    Args:
        path: The file.
        name: Its name in messages.

    Raises:
        ConfigurationError: It is missing, unreadable, no YAML, or no mapping.
    """
    try:
        tree = _tree(path)
        values = _Plain().of(tree)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise ConfigurationError(f"{name}: {reason} ({path}); create it") from error
    except YAMLError as error:
        # The cause is cut off: it repeats the text of the file, which may hold a secret.
        raise ConfigurationError(_yaml_message(error, name)) from None
    except Exception as error:
        raise ConfigurationError(f"{name}: {_message_of(error)}") from None
    if tree is None:
        return Document(name=name, values={}, tree={})
    if not isinstance(values, dict):
        raise ConfigurationError(
            f"{name}:1: the file has to be a mapping; write lines of key: value"
        )
    return Document(name=name, values=values, tree=tree)


def _key_in(node: Any, part: int | str) -> Any:
    if isinstance(node, list):
        return part if isinstance(part, int) and 0 <= part < len(node) else None
    if isinstance(node, dict):
        return next((key for key in node if str(key) == str(part)), None)
    return None


class _TooLargeError(Exception):
    """The file, or what its aliases make of it, is larger than any configuration."""


def _tree(path: Path) -> Any:
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise _TooLargeError(f"the file has more than {LARGEST_FILE:,} bytes; make it shorter.")
    return YAML(typ="rt", pure=True).load(content.decode("utf-8-sig"))


class _Plain:
    """Makes plain values of a tree, up to a number of them: an alias repeats all that it names."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return one value as plain Python."""
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise _TooLargeError(
                f"the file has more than {MOST_VALUES:,} values, aliases written out, or more than"
                f" {DEEPEST} levels; make it shorter."
            )
        if isinstance(value, Mapping):
            return {
                self.of(key, depth + 1): self.of(each, depth + 1) for key, each in value.items()
            }
        if isinstance(value, list | tuple | set):
            return [self.of(each, depth + 1) for each in value]
        return _scalar(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if type(value).__name__ == "ScalarBoolean":
        return bool(value)
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return str(value)


def _message_of(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "the file is not UTF-8; save it as UTF-8."
    if isinstance(error, RecursionError):
        return "the file refers to itself or is nested too deeply; remove that."
    if isinstance(error, _TooLargeError):
        return str(error)
    # The parser's own mistakes over odd text; their words may repeat it, and a secret in it.
    return f"this cannot be read as YAML ({type(error).__name__})."


def _yaml_message(error: YAMLError, name: str) -> str:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    where = f"{name}:{mark.line + 1}" if mark else name
    if isinstance(error, DuplicateKeyError):
        found = re.match(r'found duplicate key "([^"]*)"', str(error.problem))
        key = f" {found.group(1)}" if found else ""
        return f"{where}: the key{key} stands there twice; once is allowed."
    problem = error.problem if isinstance(error, MarkedYAMLError) else None
    return (
        f"{where}: this is not valid YAML: {problem or 'it cannot be read'}; check the indentation."
    )
