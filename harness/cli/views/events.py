"""Shows data-change events as a table, and parses the command-line options for them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from rich.console import Console

from harness.cli.views.listings import Listing
from harness.cli.views.terminal import Column, line, print_table
from harness.cli.views.words import change_of
from harness.errors import ConfigurationError
from harness.events.event import ChangeEvent
from harness.events.partition import PartitionError, levels_given, plain_text
from harness.platform.format import count, duration
from harness.toolkit.changes.search import PARTITIONS, Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = (
    Column(title="registered"),
    Column(title="table", keeps_end=True),
    Column(title="change"),
    Column(title="partition", may_shrink=True),
    Column(title="snapshot", keeps_end=True),
)
_DETAILS = (Column(title="made"), Column(title="tags", may_wrap=True))
#: The part of a tag that is shown; scripts get all of it.
_TAG_LENGTH = 60


def show(
    console: Console, events: Sequence[ChangeEvent], *, left_out: int = 0, is_verbose: bool = False
) -> None:
    """Print one line per event, and how many there are.

    Args:
        console: Where they are shown.
        events: The events.
        left_out: How many earlier ones are not among them.
        is_verbose: Show when each snapshot was made and the tags, too.
    """
    columns = (*_COLUMNS, *_DETAILS) if is_verbose else _COLUMNS
    print_table(console, columns, [_row(event)[: len(columns)] for event in events])
    earlier = f"  and {left_out:,} earlier: --limit" if left_out else ""
    console.print(line((count(len(events), "event"), "bold"), (earlier, "dim")))


def listing_of_events(events: Sequence[ChangeEvent]) -> Listing:
    """Return a line per event."""
    changes = Counter(str(event.operation_type) for event in events)
    rows = [_row(event)[: len(_COLUMNS)] for event in events]
    return Listing(noun="event", states=changes, columns=_COLUMNS, rows=rows)


def tags_from(given: Iterable[str]) -> dict[str, str]:
    """Read tags as a command line has them, ``key=value``.

    Raises:
        ConfigurationError: One is none, or two contradict each other.
    """
    tags: dict[str, str] = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign or not key:
            raise ConfigurationError(f"The tag '{each}' has no key and value; write key=value")
        if tags.setdefault(key, value) != value:
            raise ConfigurationError(
                f"No event has the tag {key} both as '{tags[key]}' and as '{value}'; give one"
            )
    return tags


def partition_from(given: Sequence[str]) -> list[str] | None:
    """Read a partition as a command line has it: in one option, or each level in its own.

    Raises:
        ConfigurationError: It cannot be read as one.
    """
    try:
        return list(levels_given(given)) if given else None
    except PartitionError as error:
        raise ConfigurationError(f"--partition {error}; write for example 'EU;7'") from error


def instant_from(text: str | None, now: datetime) -> Instant | None:
    """Read ``-2h`` as the instant so long ago; anything else stays what it is."""
    if text is not None and text.startswith("-") and not text[1:].isdecimal():
        with suppress(ValueError, OverflowError):
            return now - duration(text[1:])
    return text


def _row(event: ChangeEvent) -> tuple[str, ...]:
    return (
        _instant(event.event_ts),
        event.table,
        change_of(event),
        _partition(event),
        event.snapshot_id or "-",
        _instant(event.snapshot_ts),
        ", ".join(_tag(key, value) for key, value in sorted(event.tags.items())),
    )


def _partition(event: ChangeEvent) -> str:
    if event.partition is not None:
        return " / ".join(map(plain_text, event.partition))
    return "several" if PARTITIONS in event.tags else "-"


def _tag(key: str, value: str) -> str:
    return f"{key}={value if len(value) <= _TAG_LENGTH else value[: _TAG_LENGTH - 1] + '…'}"


def _instant(at: int | None) -> str:
    """Return milliseconds since the epoch as an instant; a producer's clock may show anything."""
    if at is None:
        return "-"
    try:
        reported = _EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return str(at)
    return reported.strftime("%Y-%m-%d %H:%M:%SZ")
