"""Says how long a look at each source may take."""

from harness.sense.types import Source
from harness.settings_connections import Connections
from harness.settings_models import Sensing

#: A slow but living cluster may use up its limit in each: topics, ends, starts, messages.
_KAFKA_REQUESTS = 4
#: A database is asked everything within its limit; preprocess queries come on top of it.
_DATABASE_REQUESTS = 2


def look_limits(sensing: Sensing, connections: Connections) -> dict[str, float]:
    """Return the time limits in seconds of all sources that differ from the project's.

    A look that is given up says nothing of what is wrong, so a connection's own limit has to come
    first: where ``sensing.limits`` is silent, a source gets time for all requests of a look.
    """
    usual = sensing.look_timeout_seconds
    limits: dict[str, float] = {}
    for source, seconds in connections.slowest_by_source().items():
        requests = _KAFKA_REQUESTS if source == Source.KAFKA else _DATABASE_REQUESTS
        limits[source] = max(usual, seconds * requests)
    limits.update((str(source), seconds) for source, seconds in sensing.limits.items())
    return limits
