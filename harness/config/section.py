"""What every section of ``heartbeat.yml`` is made of."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

#: The keyword of the JSON schema that holds the name of a mapping's free key.
FREE_KEY = "x-free-key"

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


@dataclass(frozen=True, slots=True)
class KeyName:
    """Names the free key of a mapping, for messages and documentation."""

    name: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the name to the schema of the mapping."""
        return {**handler(schema), FREE_KEY: self.name}


class Section(BaseModel):
    """A part of the file: frozen, and nothing but the keys named here."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )
