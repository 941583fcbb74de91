"""Reports: a run or a comparison in the formats that people and programs read."""

from cbench_server.texts import numbers

__all__ = ["numbers"]
