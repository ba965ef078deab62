"""Shows the status as a screen that changes: jobs, upstreams and events, and the keys for them.

The screen is a function of what was read and of the keys so far; terminals and time are elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from io import StringIO

from rich.console import Console
from rich.text import Text

from harness.cli.views.events import listing_of_events
from harness.cli.views.listings import Listing, listing_of_jobs, listing_of_upstreams
from harness.cli.views.terminal import line, print_table
from harness.events.event import ChangeEvent
from harness.inspect.listings import ListedUpstream, list_jobs
from harness.inspect.status import Status
from harness.platform.format import age, instant

_SELECTED = "reverse"
#: The heading of a section and the line with the names of its columns.
_FRAME = 2
_KEYS = "↑ ↓ or j k select   Enter or e explain   q quit"
_KEYS_OF_EXPLANATION = "↑ ↓ or j k scroll   any other key goes back"


class Key(Enum):
    """What a person may press."""

    UP = auto()
    DOWN = auto()
    EXPLAIN = auto()
    QUIT = auto()
    OTHER = auto()


_SEQUENCES = {
    b"\x1b[A": Key.UP,
    b"\x1bOA": Key.UP,
    b"k": Key.UP,
    b"\x1b[B": Key.DOWN,
    b"\x1bOB": Key.DOWN,
    b"j": Key.DOWN,
    b"\r": Key.EXPLAIN,
    b"\n": Key.EXPLAIN,
    b"e": Key.EXPLAIN,
    b"q": Key.QUIT,
    b"Q": Key.QUIT,
}


def keys_in(data: bytes) -> list[Key]:
    """Return the keys that a terminal has sent."""
    keys = []
    while data:
        known = next((each for each in _SEQUENCES if data.startswith(each)), None)
        # A sequence that is not known here is one key, not several.
        length = len(known) if known else _length_of_sequence(data)
        keys.append(_SEQUENCES[known] if known else Key.OTHER)
        data = data[length:]
    return keys


def _length_of_sequence(data: bytes) -> int:
    if not data.startswith((b"\x1b[", b"\x1bO")):
        return 1
    ends = (place for place in range(2, len(data)) if 0x40 <= data[place] <= 0x7E)
    return next(ends, len(data) - 1) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was read at one instant."""

    status: Status
    upstreams: Sequence[ListedUpstream]
    #: The newest ones, oldest first.
    events: Sequence[ChangeEvent]
    #: The jobs in the order of the screen.
    job_ids: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        """List the jobs once for all the screens that show them."""
        ids = [each.job.job_id for each in list_jobs(self.status)]
        object.__setattr__(self, "job_ids", ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What the keys so far have led to."""

    snapshot: Snapshot
    #: The job under the cursor; the first one when it is gone.
    job_id: int | None = None
    #: The lines of an explanation, while one is shown, and the first that is visible.
    explanation: Sequence[Text] | None = None
    offset: int = 0
    #: Why what is shown could not be read again.
    problem: str = ""
    is_over: bool = False

    @property
    def place(self) -> int:
        """The line of the selected job."""
        ids = self.snapshot.job_ids
        return ids.index(self.job_id) if self.job_id in ids else 0

    def press(self, key: Key, explain: Callable[[int], Sequence[Text]]) -> "Screen":
        """Return the screen after a key.

        Args:
            key: The key.
            explain: Returns the lines that explain a job.
        """
        if self.explanation is not None:
            return self._scrolled(key)
        ids = self.snapshot.job_ids
        match key:
            case Key.QUIT:
                return replace(self, is_over=True)
            case Key.UP | Key.DOWN if ids:
                step = 1 if key is Key.DOWN else -1
                place = min(max(self.place + step, 0), len(ids) - 1)
                return replace(self, job_id=ids[place])
            case Key.EXPLAIN if ids:
                job_id = ids[self.place]
                return replace(self, job_id=job_id, explanation=explain(job_id), offset=0)
            case _:
                return self

    def renewed(self, snapshot: Snapshot | None, problem: str) -> "Screen":
        """Return the screen with what was read last."""
        if problem == self.problem and (snapshot is None or snapshot is self.snapshot):
            return self
        return replace(self, snapshot=snapshot or self.snapshot, problem=problem)

    def _scrolled(self, key: Key) -> "Screen":
        match key:
            case Key.UP:
                return replace(self, offset=max(0, self.offset - 1))
            case Key.DOWN:
                last = max(0, len(self.explanation or ()) - 1)
                return replace(self, offset=min(last, self.offset + 1))
            case _:
                return replace(self, explanation=None)

    def lines(self, width: int, height: int) -> list[Text]:
        """Return the lines for a terminal of this size, as many as it has at most."""
        if self.explanation is not None:
            body = list(self.explanation[self.offset :])
            return self._framed(body, _KEYS_OF_EXPLANATION, height)
        room = height - len(self._head()) - 1
        body = []
        for listing, share, selected in self._sections():
            rows = min(len(listing.rows), max(1, int(room * share) - _FRAME))
            section = _section(listing, width, rows, selected)
            if len(body) + len(section) + 1 > room:
                break
            body += [*section, Text()]
        return self._framed(body, _KEYS, height)

    def _sections(self) -> list[tuple[Listing, float, int | None]]:
        """Return the sections with the part of the screen that each may fill."""
        now = self.snapshot.status.now
        jobs = listing_of_jobs(list_jobs(self.snapshot.status), now)
        upstreams = listing_of_upstreams(self.snapshot.upstreams, now)
        events = listing_of_events(self.snapshot.events[::-1])
        return [(jobs, 0.5, self.place), (upstreams, 0.25, None), (events, 0.25, None)]

    def _head(self) -> list[Text]:
        status = self.snapshot.status
        parts = [f"as of {instant(status.now)}"]
        if status.holder:
            since = age(status.holder.since, status.now)
            parts.append(f"`{status.holder.command}` has been at work for {since}")
        elif status.last_tick_at:
            parts.append(f"last tick {age(status.last_tick_at, status.now)} ago")
        head = [line(("heartbeat", "bold"), (f"   {', '.join(parts)}", "dim"))]
        return [*head, line((self.problem, "red"))] if self.problem else head

    def _framed(self, body: Sequence[Text], keys: str, height: int) -> list[Text]:
        head = self._head()
        room = max(0, height - len(head) - 1)
        shown = [*body[:room], *([Text()] * (room - len(body)))]
        return [*head, *shown, line((keys, "dim"))][:height]


def _section(listing: Listing, width: int, rows: int, selected: int | None) -> list[Text]:
    """Return a heading and so many rows of a listing, the selected one among them."""
    first = 0 if selected is None else max(0, min(selected - rows // 2, len(listing.rows) - rows))
    window = listing.rows[first : first + rows]
    hidden = len(listing.rows) - len(window)
    more = f"   {hidden:,} more" if hidden else ""
    lines = [line(*listing.heading, (more, "dim"))]
    if not window:
        return lines
    table = captured(width, lambda console: print_table(console, listing.columns, window))
    if selected is not None:
        table[1 + selected - first].stylize(_SELECTED)
    return [*lines, *table]


def captured(width: int, show: Callable[[Console], object]) -> list[Text]:
    """Return as lines what would be printed on a terminal of this width."""
    stream = StringIO()
    # The terminal that they are shown on decides whether it has colours.
    show(
        Console(
            file=stream,
            width=width,
            force_terminal=True,
            color_system="standard",
            highlight=False,
            markup=False,
            emoji=False,
            no_color=False,
        )
    )
    return [Text.from_ansi(each) for each in stream.getvalue().splitlines()]
