"""Keeps the values of secrets that were resolved in this process, and hides them in any text.

It does not resolve references. Every value is also hidden as base64 (alone, or inside a longer
encoded text such as a header), percent-encoded and inside JSON, because clients put them so into
their messages.
"""

import base64
import json
import re
import threading
from urllib.parse import quote, quote_plus

MASK = "***"

#: A shorter value is hidden only where it stands as a word, or it would eat ordinary text.
_SHORT = 6


class Masker:
    """Knows the values to hide."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        """Hide this value from now on; an empty one is no secret."""
        if not value:
            return
        with self._lock:
            self._forms |= _forms_of(value)
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(_as_pattern, longest_first)))

    def hide(self, text: str) -> str:
        """Return the text with every known value, in any of its forms, replaced by ``***``."""
        return self._pattern.sub(MASK, text) if self._pattern else text


def _forms_of(value: str) -> set[str]:
    plain = {
        value,
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
    }
    return plain if len(value) < _SHORT else plain | _base64_forms(value.encode())


def _base64_forms(value: bytes) -> set[str]:
    """Encode the value at each of the three places it can have inside a longer text."""
    forms = set()
    for before in range(3):
        text = base64.b64encode(b"\0" * before + value).decode()
        unknown_head = (before * 8 + 5) // 6
        whole_tail = (before + len(value)) * 8 // 6
        certain = text[unknown_head:whole_tail]
        forms |= {certain, certain.replace("+", "-").replace("/", "_")}
    return forms


def _as_pattern(form: str) -> str:
    literal = re.escape(form)
    return literal if len(form) >= _SHORT else rf"(?<!\w){literal}(?!\w)"


_MASKER = Masker()


def mask(value: str) -> None:
    """Hide this value in every log line, row and message of the process from now on."""
    _MASKER.add(value)


def masked(text: str) -> str:
    """Return the text without any secret that was resolved in this process."""
    return _MASKER.hide(text)
