"""Planted secrets that tests search for: one that is found anywhere has been leaked."""

import base64
import gzip
import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow import ArrowException, parquet


@dataclass(frozen=True, slots=True)
class Canary:
    """One secret of one kind. Its middle survives every way of writing it into a URL or JSON."""

    kind: str
    middle: str = field(default_factory=lambda: uuid.uuid4().hex)
    #: What the value has around its middle.
    around: str = '+/ä"\\ %{}'

    @property
    def value(self) -> str:
        """The secret."""
        return self.around.format(self.middle) if "{}" in self.around else self.middle

    @property
    def traces(self) -> Iterator[bytes]:
        """What is left of it in raw text, in URLs, in hexadecimal and in base64."""
        raw = self.middle.encode()
        yield raw
        yield raw.upper()
        yield raw.hex().encode()
        yield raw.hex().upper().encode()
        for before in range(3):
            text = base64.b64encode(b"\0" * before + raw)
            certain = text[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]
            yield certain
            yield certain.replace(b"+", b"-").replace(b"/", b"_")


def found_in(content: bytes, canaries: Iterable[Canary]) -> set[str]:
    """Return the kinds of the canaries that are in it."""
    return {canary.kind for canary in canaries if any(trace in content for trace in canary.traces)}


def found_below(folder: Path, canaries: Iterable[Canary]) -> dict[str, set[str]]:
    """Return the files that contain a canary, compressed ones included."""
    known = tuple(canaries)
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    found = {str(path): found_in(contents_of(path), known) for path in files}
    return {path: kinds for path, kinds in found.items() if kinds}


def contents_of(path: Path) -> bytes:
    """Return a file's bytes, followed by their decompressed content."""
    raw = path.read_bytes()
    if path.suffix == ".parquet":
        try:
            rows = parquet.read_table(path).to_pylist()
        except (ArrowException, OSError):
            return raw
        return raw + json.dumps(rows, default=str, ensure_ascii=False).encode()
    return raw + gzip.decompress(raw) if path.suffix == ".gz" else raw
