"""What only a session with a JVM of its own has: a cluster's, on compute that one user has alone.

Nothing else in the product uses the gateway to that JVM. A session of Spark Connect raises no
error of its kind, and is cancelled by its own calls.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:
    # A client of Spark Connect has no gateway to a JVM.
    Py4JError = Py4JJavaError = type("Py4JError", (Exception,), {})

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Py4JError", "Py4JJavaError", "cancel_all", "new_session", "tagging"]


def new_session(session: "SparkSession") -> "SparkSession":
    """Return another session of the same process, with settings of its own and the same tables."""
    return session.newSession()


def cancel_all(session: "SparkSession") -> None:
    """Cancel what runs in a session; callable from any thread."""
    context = getattr(session, "sparkContext", None)
    if context is None:
        session.interruptAll()
    else:
        context.cancelAllJobs()


def tagging(session: "SparkSession") -> tuple[Callable[[str], object], ...]:
    """Return what adds a tag to this thread's work, interrupts the work, and removes the tag."""
    context = getattr(session, "sparkContext", None)
    if context is None:
        return session.addTag, session.interruptTag, session.removeTag
    # A session with a JVM of its own finds a tag only from the thread that has added it.
    return context.addJobTag, context.cancelJobsWithTag, context.removeJobTag
