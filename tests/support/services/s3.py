"""A server with the protocol of S3, on this machine, as an object store for the tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

REGION = "eu-central-1"


@contextmanager
def object_store() -> Iterator[str]:
    """Serve an empty bucket, and let this process find it; its address is given."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
            environment.setenv("AWS_ALLOW_HTTP", "true")
            environment.setenv("AWS_ACCESS_KEY_ID", "a-key")
            environment.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
            environment.setenv("AWS_REGION", REGION)
            bucket = f"lake-{uuid4().hex[:8]}"
            boto3.client("s3", region_name=REGION).create_bucket(
                Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION}
            )
            yield f"s3a://{bucket}"
    finally:
        server.stop()
