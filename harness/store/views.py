"""Reads models that are views.

Spark's analysis of a decision, ten views deep, takes as long as running it. A process that ticks
again and again has every view analysed once, and each reading plans and runs again on the tables as
they are then.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.platform.spark.session import unreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Views:
    """The models of one schema, for reading.

    Args:
        session: Gives the session; asked only when something is read.
        schema: The schema of every model.
        keeps: Keep what was analysed until ``forget``; only where no other process makes views.
    """

    def __init__(self, session: "Callable[[], SparkSession]", schema: str, *, keeps: bool) -> None:
        self._session = session
        self._schema = schema
        self._keeps = keeps
        self._analysed: dict[str, DataFrame] = {}

    def rows(self, relation: str) -> list[dict[str, object]]:
        """Read every row of a model.

        Raises:
            StateError: Spark reports that it cannot be read.
        """
        try:
            return self._read(relation)
        except Exception as error:
            reported = unreadable(f"{self._schema}.{relation}", error)
            if reported is None:
                raise
            raise reported from error

    def _read(self, relation: str) -> list[dict[str, object]]:
        frame = self._analysed.get(relation)
        if frame is None:
            frame = self._session().table(f"{self._schema}.{relation}")
            if self._keeps:
                self._analysed[relation] = frame
        # A frame keeps its first plan, and with it the files of that moment: never run it itself.
        return [row.asDict(recursive=True) for row in frame.select("*").collect()]

    def forget(self) -> None:
        """Have every view analysed again: one of them is to change."""
        self._analysed.clear()
