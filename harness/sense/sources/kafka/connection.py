"""Makes a client of a product's cluster, with its secret fetched at that moment."""

from collections.abc import Callable, Mapping

from harness.config.connections import KafkaCluster
from harness.config.secrets import SecretResolver
from harness.errors import ProbeFailedError
from harness.platform.masking import mask
from harness.sense.sources.kafka.types import Cluster


def connector(
    clusters: Mapping[str, KafkaCluster], secrets: SecretResolver
) -> Callable[[str], Cluster]:
    """Return what makes a client of the cluster of a product."""

    def connect(product: str) -> Cluster:
        # The client is a library outside Python, which only those need who have a topic.
        from harness.sense.sources.kafka.client import KafkaClient

        cluster = clusters.get(product)
        if cluster is None:
            raise ProbeFailedError(
                f"heartbeat.yml has no connections.kafka.{product}; name the cluster's brokers"
                " there"
            )
        return KafkaClient(cluster, _password(cluster, secrets))

    return connect


def _password(cluster: KafkaCluster, secrets: SecretResolver) -> str | None:
    if cluster.password is None:
        return None
    password = cluster.password.resolve(secrets).get_secret_value()
    mask(password)
    return password
