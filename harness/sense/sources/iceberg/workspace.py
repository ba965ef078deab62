"""Loads Iceberg tables of a workspace's catalogs by Iceberg's REST protocol, one request each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from harness.errors import ProbeFailedError
from harness.platform.databricks.lazy_client import LazyClient
from harness.sense.catalog_tables import CatalogName

_TABLE = "/api/2.1/unity-catalog/iceberg-rest/v1/catalogs/{}/namespaces/{}/tables/{}"
_TIMEOUT_SECONDS = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """The present state of a table."""

    #: The metadata file that the state is in; another one after each commit.
    location: str
    #: What is in that file.
    metadata: Mapping[str, Any]


class WorkspaceTables(Protocol):
    """Loads the Iceberg tables of a workspace."""

    #: The catalog of names that have none.
    catalog: str

    def load(self, name: CatalogName) -> LoadedTable:
        """Return the present state of a table.

        Raises:
            ProbeFailedError: There is no such Iceberg table, or the workspace does not show it.
        """
        ...


class RestTables:
    """Queries the workspace that the SDK's own environment names, with the SDK's own login.

    Args:
        catalog: The catalog of names that have none.
    """

    def __init__(self, catalog: str) -> None:
        self.catalog = catalog
        self._client = LazyClient(_TIMEOUT_SECONDS)

    def load(self, name: CatalogName) -> LoadedTable:
        """Return the present state of a table."""
        from databricks.sdk.errors import NotFound, PermissionDenied

        from harness.platform.databricks.workspace import described

        parts = (quote(part, safe="") for part in (name.catalog, name.schema, name.table))
        try:
            answer: Any = self._client.get().api_client.do("GET", _TABLE.format(*parts))
            return LoadedTable(location=answer["metadata-location"], metadata=answer["metadata"])
        except NotFound as error:
            raise ProbeFailedError(
                f"the Iceberg table {name} does not exist, or is not shown to this identity"
            ) from error
        except PermissionDenied as error:
            raise ProbeFailedError(
                f"the workspace does not let this identity read {name} as Iceberg; grant SELECT on"
                f" it and EXTERNAL USE SCHEMA on its schema: {described(error).rstrip('.')}"
            ) from error
        except (KeyError, TypeError) as error:
            raise ProbeFailedError(
                f"the workspace's answer does not describe the Iceberg table {name}"
            ) from error
        except Exception as error:
            self._client.forget_revoked(error)
            # The SDK wraps what it would have tried again.
            cause = error.__cause__ if isinstance(error, TimeoutError) else None
            reason = described(cause or error).rstrip(".")
            raise ProbeFailedError(f"the workspace does not answer: {reason}") from error
