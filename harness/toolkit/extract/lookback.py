"""Determines where the largest value of a bronze table is searched, and checks the options."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TypedDict

from harness.errors import ConfigurationError, ExtractError
from harness.platform.spark.session import message_of
from harness.platform.sql_names import is_column, is_table

PARTITION = "p_extracted_at"
DAYS = 7


class Future(StrEnum):
    """What becomes of a value that is later than now."""

    #: It is left out of account, and named in a note: rows up to it are extracted meanwhile.
    IGNORE = "ignore"
    #: Nothing is extracted.
    REFUSE = "refuse"
    #: It counts like any other.
    TAKE = "take"


class LookBack(TypedDict, total=False):
    """Where the largest value is looked for."""

    #: Partitions up to so many days old are read; 7.
    days: int
    #: The column that bronze is partitioned by; ``p_extracted_at``.
    partition: str
    #: What becomes of a value that is later than now; it is ignored.
    future: Future


def checked_table(name: str) -> str:
    """Return a table's name without spaces around it.

    Raises:
        ConfigurationError: It is none.
    """
    name = name.strip()
    if not is_table(name):
        raise ConfigurationError(
            f"{name!r} is not the name of a table; allowed are schema.table and"
            " catalog.schema.table, with a part in backticks where it has other characters than"
            " letters, digits and _"
        )
    return name


@contextmanager
def one_sentence(name: str, doing: str = "cannot be read") -> Iterator[None]:
    """Report in one sentence why Spark fails.

    Raises:
        ExtractError: It does.
    """
    from harness.platform.spark.errors import SPARK_ERRORS

    try:
        yield
    except SPARK_ERRORS as error:
        raise ExtractError(f"{name} {doing}: {message_of(error)}") from error


def checked_partition(name: str) -> str:
    """Return the name of the column that bronze is partitioned by.

    Raises:
        ConfigurationError: It is none.
    """
    if not is_column(name) or "." in name:
        raise ConfigurationError(
            f"{name!r} is not the name of a column to partition by; use letters, digits and _"
        )
    return name.strip("`")


def checked_days(days: int) -> int:
    """Return how many days are looked back.

    Raises:
        ConfigurationError: It is no number from 1.
    """
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        raise ConfigurationError(f"days is {days!r}; allowed is an integer from 1")
    return days
