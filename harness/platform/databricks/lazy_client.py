"""A client of the workspace that the SDK's own environment names, made when it is first needed.

It imports no SDK before: an idle tick has no use for it.
"""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


class LazyClient:
    """Logs in at the first use, once for all threads.

    Args:
        timeout_seconds: How long one request may take.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._client: WorkspaceClient | None = None

    def get(self) -> "WorkspaceClient":
        """Return the client.

        Raises:
            ValueError: There are no credentials that the SDK can use.
            OSError: A file of the SDK's cannot be read.
        """
        from harness.platform.databricks.workspace import bounded_config, workspace_client

        with self._lock:
            if self._client is None:
                config = bounded_config(http_timeout_seconds=self._timeout_seconds)
                self._client = workspace_client(config)
            return self._client

    def forget_revoked(self, error: Exception) -> None:
        """Log in again at the next use when the workspace no longer accepts the login."""
        from databricks.sdk.errors import Unauthenticated

        if isinstance(error, Unauthenticated):
            self._client = None
