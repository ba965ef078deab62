"""Says who logs in to a database; the password is fetched at each login and hidden in all texts."""

from harness.secrets import mask
from harness.settings_connections import Database
from harness.settings_secrets import SecretResolver


def credentials(database: Database, secrets: SecretResolver) -> dict[str, str]:
    """Return user and password, as far as there are any, by their names in JDBC.

    Raises:
        ConfigurationError: The password is not where the reference says.
    """
    found = {}
    if database.user:
        found["user"] = database.user
    if database.password:
        found["password"] = database.password.resolve(secrets).get_secret_value()
        mask(found["password"])
    return found
