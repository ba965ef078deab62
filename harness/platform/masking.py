"""Keeps the values of secrets that were resolved in this process, and hides them in any text.

It does not resolve references. Every value is also hidden as base64 (alone, or inside a longer
encoded text such as a header), in hexadecimal, percent-encoded, inside JSON and as Python shows
text and bytes, because clients put them so into their messages. What has the form of a login is
hidden even when it was not named.
"""

import base64
import html
import re
import threading
from collections.abc import Mapping
from urllib.parse import unquote

MASK = "***"

#: A shorter value is hidden only where it stands as a word, or it would eat ordinary text.
_SHORT = 6

#: A variable of the environment with such a name holds a secret, if its value is long enough to.
_SECRET_VARIABLE = re.compile(
    r"(PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)$",
    re.IGNORECASE,
)
_SHORTEST_VARIABLE = 8

#: The password in an address, and what no host and no word of a path looks like.
_PASSWORD = re.compile(r"://[^/@:]*:([^/@]+)@")
_LIKE_A_TOKEN = re.compile(r"(?=[^.]*$)(?=.*[a-z])(?=.*[A-Z0-9]).{8,}|(?=.*[0-9])[A-Z0-9]{8,}")

_LETTERS_OF_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}

#: The parts of a secret that are spelled one by one: a run of backslashes, or a character.
_UNIT = re.compile(r"\\+|.", re.DOTALL)

#: All the backslashes that escapes have put here, or none.
_BACKSLASHES = r"(?:(?<!\\)\\++)?+"

#: Logins as headers carry them, and tokens as a workspace makes them.
_LOGIN = re.compile(
    r"\b(Bearer|Basic)(\s+)[\w.~+/=-]{16,}|\bdapi[0-9a-f]{16,}(?:-\d+)?\b", re.IGNORECASE
)


class Masker:
    """Holds the values to hide."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[str] = set()
        #: Patterns of the known values in all their spellings, and how long each value is.
        self._spellings: dict[str, int] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        """Hide this value from now on; an empty one is no secret."""
        if value in self._known:
            return
        parts = {value, value.strip(), *(line.strip() for line in value.splitlines())}
        with self._lock:
            for part in parts:
                # A short line of a long secret gives little away, and may be any word.
                if part and (len(part) >= _SHORT or part == value):
                    self._spellings.update(dict.fromkeys(_spellings_of(part), len(part)))
            longest_first = sorted(self._spellings, key=lambda each: (-self._spellings[each], each))
            self._pattern = re.compile("|".join(longest_first)) if longest_first else None
            self._known.add(value)

    def hide(self, text: str) -> str:
        """Return the text with every known value, in any of its forms, replaced by ``***``."""
        known = self._pattern.sub(MASK, text) if self._pattern else text
        return _LOGIN.sub(_without_login, known)


def _without_login(found: re.Match[str]) -> str:
    scheme, gap = found.groups()
    return f"{scheme}{gap}{MASK}" if scheme else MASK


def _spellings_of(value: str) -> set[str]:
    plain = "".join(map(_spellings_of_unit, _UNIT.findall(value)))
    if len(value) < _SHORT:
        return {rf"(?<!\w){plain}(?!\w)"}
    raw = value.encode(errors="surrogatepass")
    return {plain, *map(re.escape, _base64_forms(raw)), f"(?i:{raw.hex()})"}


def _spellings_of_unit(unit: str) -> str:
    """Return a pattern of what JSON, Python, URLs and HTML make of it, one within the other too.

    The text is of others. A search takes time linear in it because a run of backslashes is matched
    from its first one only, whole, and is never given back (``++``).
    """
    if unit.isascii() and unit.isalnum():
        return unit
    if unit[0] == "\\":
        times = len(unit)
        escapes = "|".join(_escapes_of(unit[0]))
        return rf"(?:(?<!\\)\\{{{times},}}+|(?:{_BACKSLASHES}(?:{escapes})){{{times}}})"
    spellings = [re.escape(unit), *_escapes_of(unit)]
    if unit in _LETTERS_OF_CONTROLS:
        spellings.append(rf"(?<=\\){_LETTERS_OF_CONTROLS[unit]}")
    if unit == " ":
        spellings.append(r"\+")
    named = html.escape(unit)
    if named != unit:
        spellings.append(re.escape(named))
    return f"{_BACKSLASHES}(?:{'|'.join(spellings)})"


def _escapes_of(character: str) -> list[str]:
    """Return patterns of the character by its number, as URLs, JSON and Python write it."""
    code = ord(character)
    encoded = [f"{byte:02x}" for byte in character.encode(errors="surrogatepass")]
    halves = character.encode("utf-16-be", errors="surrogatepass").hex()
    units = [f"u{halves[at : at + 4]}" for at in range(0, len(halves), 4)]
    escapes = [r"\\++".join(units), f"U{code:08x}", r"\\++".join(f"x{byte}" for byte in encoded)]
    if code < 256:
        escapes.append(f"x{code:02x}")
    percent = "".join(f"%(?:25)*{byte}" for byte in encoded)
    return [f"(?i:{percent})", rf"(?<=\\)(?i:{'|'.join(escapes)})"]


def _base64_forms(value: bytes) -> set[str]:
    """Encode the value at each of the three places it can have inside a longer text."""
    forms = set()
    for before in range(3):
        text = base64.b64encode(b"\0" * before + value).decode()
        unknown_head = (before * 8 + 5) // 6
        complete_tail = (before + len(value)) * 8 // 6
        certain = text[unknown_head:complete_tail]
        forms |= {certain, certain.replace("+", "-").replace("/", "_")}
    return forms


_MASKER = Masker()


def mask(value: str) -> None:
    """Hide this value in every log line, row and message of the process from now on."""
    _MASKER.add(value)


def mask_address(address: str) -> None:
    """Hide an address that is a secret, and each part of it that looks like one.

    Messages of clients repeat parts of an address: its path, its login. Parts that are ordinary
    words, such as a host or a user, stay readable.
    """
    mask(address)
    for part in re.split(r"[/?&=:@,;#]+", address):
        for spelling in {part, unquote(part)}:
            if _LIKE_A_TOKEN.fullmatch(spelling):
                mask(spelling)
    if password := _PASSWORD.search(address):
        mask(password.group(1))
        mask(unquote(password.group(1)))


def mask_environment(environment: Mapping[str, str]) -> None:
    """Hide the values of the variables whose names indicate that they hold a secret.

    What is referred to as ``env:NAME`` is masked where it is used; these are masked before anything
    is, and so are the logins that libraries take from the environment on their own.
    """
    for name, value in environment.items():
        is_path = value.startswith("/")
        if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_VARIABLE and not is_path:
            mask(value)


def masked(text: str) -> str:
    """Return the text without any secret that was resolved in this process."""
    return _MASKER.hide(text)
