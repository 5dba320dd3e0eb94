"""The rows, in the order of the table. Importing a module of this folder declares its rows."""

from . import latency, data, packages, load, behaviour, protocol, rivals  # noqa: F401
