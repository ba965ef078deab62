"""The errors that the local Jobs API answers with, worded as Databricks words them."""

from typing import NoReturn


class ApiError(Exception):
    """A request is answered with an error status.

    Args:
        status: The HTTP status.
        error_code: Databricks' name for the error.
        message: One sentence for a person.
        headers: Headers to send with the answer.
    """

    def __init__(
        self, status: int, error_code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.headers = headers or {}


def invalid(message: str) -> ApiError:
    """A parameter is missing or wrong."""
    return ApiError(400, "INVALID_PARAMETER_VALUE", message)


def no_endpoint(method: str, path: str) -> NoReturn:
    """There is no such path.

    Raises:
        ApiError: Always.
    """
    raise ApiError(404, "ENDPOINT_NOT_FOUND", f"No API found for '{method} {path}'")
