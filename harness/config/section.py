"""What every section of ``heartbeat.yml`` is made of."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


#: Where the schema of a mapping has the name of its free key.
KEY_NAME = "x-key-name"


def key_name(name: str) -> Any:
    """Name the free key of a mapping, for messages and documentation."""
    return Field(json_schema_extra={KEY_NAME: name})


class Section(BaseModel):
    """A part of the file: frozen, and nothing but the keys named here."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )
