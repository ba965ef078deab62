"""Where everything lies that belongs to one installation."""

from dataclasses import dataclass
from pathlib import Path

#: What a workspace keeps in a table, since no disk of it lasts: all that a tick reads of the one
#: before. The rest is either in tables there, or can be made again.
SHARED_FILES = frozenset(
    {
        "alarms.json",
        "arrivals.json",
        "back_off.json",
        "installation",
        "lineage.json",
        "maintenance.json",
        "metrics.json",
        "published.json",
        "state.json",
        "status.json",
        "unasked.json",
        "version.json",
        "views.unfinished",
    }
)
SHARED_FOLDERS = frozenset({"accepted", "inbox"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDir:
    """The state directory, place by place."""

    folder: Path

    @property
    def inbox(self) -> Path:
        """Messages that other processes leave for the next tick."""
        return self.folder / "inbox"

    @property
    def state(self) -> Path:
        """The state of the last process when it ended."""
        return self.folder / "state.json"

    @property
    def status(self) -> Path:
        """What the last tick left for people: its summary and every blocker."""
        return self.folder / "status.json"

    @property
    def published(self) -> Path:
        """Which state of the control table was published last."""
        return self.folder / "published.json"

    @property
    def back_off(self) -> Path:
        """When what keeps failing is probed again."""
        return self.folder / "back_off.json"

    @property
    def alarms(self) -> Path:
        """Which alarms were sent to which channel."""
        return self.folder / "alarms.json"

    @property
    def arrivals(self) -> Path:
        """How often each upstream has new data, for those who watch."""
        return self.folder / "arrivals.json"

    @property
    def lineage(self) -> Path:
        """Up to which step of a run lineage was sent."""
        return self.folder / "lineage.json"

    @property
    def metrics(self) -> Path:
        """What the metrics count, across processes."""
        return self.folder / "metrics.json"

    @property
    def warehouse(self) -> Path:
        """The Delta tables of the local target."""
        return self.folder / "warehouse"

    @property
    def metastore(self) -> Path:
        """Spark's catalog of them."""
        return self.folder / "metastore"

    @property
    def accepted(self) -> Path:
        """The seeds as they are in force, and what of them is not."""
        return self.folder / "accepted"

    @property
    def payloads(self) -> Path:
        """Event lists that are too long for a job's parameters."""
        return self.folder / "handed_over"
