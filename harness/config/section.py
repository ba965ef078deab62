"""What every section of ``heartbeat.yml`` is made of."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


@dataclass(frozen=True, slots=True)
class KeyName:
    """Names the free key of a mapping, for messages and documentation."""

    name: str


class Section(BaseModel):
    """A part of the file: frozen, and nothing but the keys named here."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )
