"""Reports: a run or a comparison in the formats that people and programs read."""

WHOLE = "run"
"""The format of all of a run, which an import reads back. It has no reporter."""
