"""What an extract needs of a source: one method, which gives the rows that bronze has not.

A source of one's own is any object with a name and this method.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness.toolkit.extract.target import Bronze

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows of a source that are to be appended."""

    frame: "DataFrame"
    #: Where they begin, and that is among them; ``None``: they are all rows.
    since: str | None = None
    #: Up to where they go, where the source has that before they are read.
    until: str | None = None
    #: The column whose largest value is where they ended.
    column: str | None = None
    #: The source has more, for the next extract.
    is_more: bool = False


class Source(Protocol):
    """Somewhere rows come from."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def read(self, bronze: Bronze) -> Batch | None:
        """Return the rows that bronze does not have yet, oldest first if not all; or none.

        Rows that bronze has may be among them; a row that it has not must not be left out.

        Raises:
            ConfigurationError: The arguments do not fit the source.
            ExtractError: It cannot be read.
        """
        ...
