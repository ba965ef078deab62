"""Heartbeat: is there new data, and which jobs may run because of it?

A notebook says ``from harness import acquired, processed``. Both are fetched when they are first
asked for, so that importing the package stays cheap.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.notebook import acquired, processed

__all__ = ["acquired", "processed"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from harness import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
