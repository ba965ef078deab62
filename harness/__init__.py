"""Heartbeat: is there new data, and which jobs may run because of it?

The tick and its steps are packages with the names of the folders in ``models``; ``context`` wires
them once. Import rules are layers in ``pyproject.toml``; ``harness.toolkit`` is what jobs import.
"""

#: Of the package, and of its dbt project.
__version__ = "0.1.0"
