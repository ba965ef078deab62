"""Every message of the code has one form: one sentence, what happened, where, and what to do."""

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Errors of the command line and of the installation: a person has to do something.
WITH_REMEDY = ("ConfigurationError", "ControlsError", "LockedError", "StateError")
#: Words that attribute to code what only people do, or that the glossary replaces.
BANNED = re.compile(
    r"\b(tell|tells|told|ask|asks|asked|know|knows|want|wants|wanted|whoever|nobody|anew|unasked)\b",
    re.IGNORECASE,
)
#: Messages whose last placeholder has the remedy: how it is put together has tests of its own.
REMEDY_IN_PLACEHOLDER = {
    "There is no job '{wanted}'; {close}",
    "There is no sensor '{name}'{of}; {or}",
    # An error of the YAML parser has its line, and what it expected there.
    "{name}: {of}",
    # Spark's and the SQL's own words, when they end with the remedy.
    "{relation} cannot be read: {error}",
    "{value} is not an instant: {error}",
}


def reference() -> ModuleType:
    path = ROOT / "docs" / "reference" / "generate.py"
    spec = importlib.util.spec_from_file_location("generator_of_messages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


GENERATOR = reference()
MESSAGES: list[Any] = GENERATOR.messages()


def prose(words: str) -> str:
    """A message without what is quoted, in backticks or a placeholder."""
    return re.sub(r"`[^`]*`|'[^']*'|{[^}]*}", " ", words)


def is_one_sentence(each: Any) -> bool:
    return "\n" not in each.words and not re.search(r"[a-z)]\. [A-Z]", prose(each.words))


def has_no_full_stop(each: Any) -> bool:
    return not each.words.endswith(".")


def has_no_banned_word(each: Any) -> bool:
    return not BANNED.search(prose(each.words))


def has_its_negation_at_the_verb(each: Any) -> bool:
    return not re.search(
        r"(?<!there )\b(is|are) no(ne)? (?!longer)\w", prose(each.words), re.IGNORECASE
    )


def has_remedy(each: Any) -> bool:
    is_exempt = each.error not in WITH_REMEDY or each.words in REMEDY_IN_PLACEHOLDER
    return is_exempt or bool(each.parts[1])


RULES = (
    is_one_sentence,
    has_no_full_stop,
    has_no_banned_word,
    has_its_negation_at_the_verb,
    has_remedy,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_message_has_the_form(rule: Callable[[Any], bool]) -> None:
    assert [(each.place, each.words) for each in MESSAGES if not rule(each)] == []


def message(template: str, error: str = "StateError") -> Any:
    return GENERATOR.Message(error=error, place="x.py", template=template)


@pytest.mark.parametrize(
    ("rule", "template"),
    [
        (is_one_sentence, "The disk is full. Make room"),
        (has_no_full_stop, "The disk is full; make room."),
        (has_no_banned_word, "The disk told us: make room"),
        (has_its_negation_at_the_verb, "The disk {name} is no disk; name another one"),
        (has_remedy, "The disk {name} is full: {error}"),
    ],
)
def test_each_rule_notices_what_breaks_it(rule: Callable[[Any], bool], template: str) -> None:
    assert not rule(message(template))
    assert all(each(message("The disk {name} is full ({error}): make room")) for each in RULES)


def test_the_collection_finds_what_is_raised_directly_and_through_a_variable() -> None:
    texts = {each.words for each in MESSAGES}
    assert "--stop and --status cannot be combined: give one of them" in texts
    assert "{option} {error}; write for example 500ms, 30s, 5m or 1h" in texts
    assert len(texts) > 100


def exempt_that_is_gone() -> Iterator[str]:
    texts = {each.words for each in MESSAGES}
    return (each for each in REMEDY_IN_PLACEHOLDER if each not in texts)


def test_no_exemption_outlives_its_message() -> None:
    assert list(exempt_that_is_gone()) == []
