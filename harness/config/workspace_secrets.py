"""Fetches the values of secrets, those of the workspace's secret scopes as well.

A value is fetched at each use and kept nowhere. It stands in no message: neither in one of ours,
nor in the cause of one.
"""

import base64
from collections.abc import Mapping

from harness.config.load import Settings
from harness.config.secrets import EnvironmentSecrets, SecretResolver, SecretStore
from harness.errors import ConfigurationError
from harness.platform.databricks.lazy_client import LazyClient

#: A probe waits for the secret first, and has its own time limit.
_TIMEOUT_SECONDS = 10.0


def secrets_for(settings: Settings, environment: Mapping[str, str]) -> SecretResolver:
    """Return what fetches the secrets of a deployment."""
    plain = EnvironmentSecrets(environment)
    return WorkspaceSecrets(plain) if settings.has_workspace else plain


class WorkspaceSecrets:
    """Fetches ``secret:`` references from the workspace that the SDK's own environment names.

    Args:
        others: Fetches all other references.
    """

    def __init__(self, others: SecretResolver) -> None:
        self._others = others
        self._client = LazyClient(_TIMEOUT_SECONDS)

    def look_up(self, store: SecretStore, name: str) -> str | None:
        """Return the value.

        Raises:
            ConfigurationError: The workspace has no such secret, refuses it or does not answer.
        """
        if store is not SecretStore.SCOPE:
            return self._others.look_up(store, name)
        scope, _, key = name.partition("/")
        return _decoded(self._fetched(scope, key), name)

    def _fetched(self, scope: str, key: str) -> str | None:
        from databricks.sdk.errors import PermissionDenied, ResourceDoesNotExist

        from harness.platform.databricks.workspace import described

        try:
            return self._client.get().secrets.get_secret(scope, key).value
        except ResourceDoesNotExist as error:
            raise ConfigurationError(
                f"the workspace has no secret:{scope}/{key}; databricks secrets put-secret"
                f" {scope} {key} makes it"
            ) from error
        except PermissionDenied as error:
            raise ConfigurationError(
                f"the workspace does not let this user read secret:{scope}/{key}; grant READ on"
                f" the scope {scope}"
            ) from error
        except Exception as error:
            self._client.forget_revoked(error)
            # The SDK wraps what it would have retried.
            cause = error.__cause__ if isinstance(error, TimeoutError) else None
            message = described(cause or error).rstrip(".")
            raise ConfigurationError(
                f"secret:{scope}/{key} cannot be fetched from the workspace: {message};"
                " check the login"
            ) from None


def _decoded(value: str | None, name: str) -> str | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True).decode()
    except ValueError:
        # The cause is cut off: it may hold a part of the value.
        raise ConfigurationError(
            f"secret:{name} of the workspace is not UTF-8 text; store it again"
        ) from None
