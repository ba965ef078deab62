"""Formats instants, ages, sizes and counts for people."""

from datetime import UTC, datetime, time, timedelta

from harness.errors import ConfigurationError

_UNITS = ("B", "kB", "MB", "GB", "TB")


def age(since: datetime | None, now: datetime) -> str:
    """Return how long ago an instant was: ``12s``, ``5m``, ``3h 20m``; a dash for none."""
    if since is None:
        return "-"
    return span((now - since).total_seconds())


def span(seconds: float) -> str:
    """Return a length of time with its two largest units at most."""
    rounded = max(0, round(seconds))
    days, rest = divmod(rounded, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{days}d {hours}h" if hours and days < 10 else f"{days}d"
    if hours:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    if minutes:
        return f"{minutes}m {left}s" if left and minutes < 10 else f"{minutes}m"
    return f"{left}s"


def took(seconds: float) -> str:
    """Return how long something took: ``4ms``, ``0.3s``, ``12s``, ``2m 5s``."""
    if seconds < 0.1:
        return f"{round(seconds * 1000)}ms"
    return f"{seconds:.1f}s" if seconds < 10 else span(seconds)


def instant(at: datetime | None, now: datetime | None = None) -> str:
    """Return an instant in UTC to the second; without its day when that is today's."""
    if at is None:
        return "-"
    at = at.astimezone(UTC)
    is_today = now is not None and at.date() == now.astimezone(UTC).date()
    return at.strftime("%H:%M:%SZ" if is_today else "%Y-%m-%d %H:%M:%SZ")


def iso(at: datetime) -> str:
    """Return an instant as ISO 8601 in UTC, with a ``Z``."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def count(number: int, one: str, many: str | None = None) -> str:
    """Return ``1 event``, ``1,204 events``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(count_of_bytes: int) -> str:
    """Return a size with its unit: ``512 B``, ``1.2 MB``."""
    value = float(count_of_bytes)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def upstream_name(upstream_id: str) -> str:
    """Return the upstream's own name out of its id, ``source:name:digest`` or ``trigger:name``."""
    source, colon, rest = upstream_id.partition(":")
    if source == "trigger":
        return f"{source} {rest}"
    name, _, _ = rest.rpartition(":")
    return name if colon and name else upstream_id


def duration(text: str) -> timedelta:
    """Read ``30s``, ``5m``, ``1h``, ``500ms`` or ``1h30m``.

    Raises:
        ValueError: It is no such text, or no time at all.
    """
    factors = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    rest, seconds = text.strip().lower(), 0.0
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789."))
        letters = len(rest[digits:]) - len(rest[digits:].lstrip("dhms"))
        unit = rest[digits : digits + letters]
        seconds += float(rest[:digits]) * factors[unit] if unit in factors else _no_duration(text)
        rest = rest[digits + letters :].strip()
    return timedelta(seconds=seconds) if seconds > 0 else timedelta(seconds=_no_duration(text))


def _no_duration(text: str) -> float:
    raise ValueError(f"'{text}' is not a length of time")


def past_instant(text: str, now: datetime) -> datetime:
    """Read a past instant: ISO 8601, ``HH:MM`` of the last 24 hours (UTC), or ``-2h``.

    Raises:
        ConfigurationError: It is none of these, or lies ahead.
    """
    try:
        at = _instant_of(text.strip(), now)
    except ValueError as error:
        raise ConfigurationError(
            f"--at '{text}' is not an instant; write for example 2026-03-01T08:00Z, 08:00 (UTC) or"
            " -2h"
        ) from error
    if at > now:
        raise ConfigurationError(f"--at {iso(at)} lies ahead: only what has been can be explained")
    return at


def _instant_of(text: str, now: datetime) -> datetime:
    if text.startswith("-") or text.endswith(" ago"):
        return now - duration(text.removeprefix("-").removesuffix(" ago"))
    if len(text) <= 8 and ":" in text:
        at = datetime.combine(now.date(), time.fromisoformat(text), tzinfo=UTC)
        return at if at <= now else at - timedelta(days=1)
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
